#include "launch/wiring/devices.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

using namespace troupe;
using namespace troupe::launch;

namespace fs = std::filesystem;

namespace {

/// A machine's /dev and /sys.
class device_tree {
 public:
  device_tree() {
    auto pattern = (fs::temp_directory_path() / "troupe_devices_XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    root_ = pattern;
  }
  ~device_tree() { fs::remove_all(root_); }

  void add(const std::string& file, const std::string& text = {}) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string path() const { return root_; }
  unsigned seen(accelerator kind) const { return look_for_devices(root_).at(kind); }

 private:
  fs::path root_;
};

launcher_options of_one_node() {
  launcher_options o;
  o.devices = accelerator::ascend;
  o.devices_said = true;
  o.hccl_port = 60'000;
  return o;
}

} // namespace

TEST_CASE("devices are the numbered files, not those beside them") {
  const device_tree machine;
  CHECK(machine.seen(accelerator::ascend) == 0);
  for (const auto* file : {"dev/davinci4", "dev/davinci11", "dev/davinci_manager", "dev/devmm_svm",
                           "dev/mtgpu.0", "dev/mtgpu.1", "dev/mtgpu.2", "dev/mtgpu"})
    machine.add(file);
  CHECK(machine.seen(accelerator::ascend) == 2);
  CHECK(machine.seen(accelerator::mthreads) == 3);
}

TEST_CASE("of the render nodes those count that are MetaX's") {
  const device_tree machine;
  for (const auto* node : {"renderD128", "renderD129", "renderD130"}) {
    machine.add(std::string("dev/dri/") + node);
    machine.add(std::string("sys/class/drm/") + node + "/device/vendor",
                std::string(node) == "renderD130" ? "0x1a03\n" : "0x9999\n");
  }
  // Another container's.
  machine.add("sys/class/drm/renderD131/device/vendor", "0x9999\n");
  CHECK(machine.seen(accelerator::metax) == 0);
  machine.add("dev/mxcd");
  CHECK(machine.seen(accelerator::metax) == 2);
}

TEST_CASE("HCCL's ports are free ones in a row") {
  const std::set<std::uint16_t> used{60'003, 60'010};
  const auto is_free = [&used](std::uint16_t port) { return used.count(port) == 0; };
  CHECK(free_ports_from(50'000, 16, is_free) == 50'000);
  CHECK(free_ports_from(60'000, 16, is_free) == 60'011);
  CHECK(free_ports_from(60'004, 6, is_free) == 60'004);
  CHECK_FALSE(free_ports_from(65'530, 16, is_free));
  CHECK_FALSE(free_ports_from(1'024, 16, [](auto) { return false; }));
}

TEST_CASE("ports in use: one node takes others and says so; several have to be told") {
  const auto is_free = [](std::uint16_t port) { return port != 60'001; };
  auto o = of_one_node();
  worker_contract contract;
  take_hccl_port(o, contract, is_free);
  CHECK(contract.hccl_port == 60'002);
  REQUIRE(o.remarks.size() == 1);
  CHECK(o.remarks.front() == "HCCL gets the ports from 60002 on (HCCL_IF_BASE_PORT): one of those "
                             "from 60000 on is in use");
  auto several = of_one_node();
  several.nodes_max = 2;
  take_hccl_port(several, contract, is_free);
  CHECK(contract.hccl_port == 60'000);
  REQUIRE(several.remarks.size() == 1);
  CHECK(several.remarks[0].find("give all nodes of the job another one") != std::string::npos);
  take_hccl_port(several, contract, [](auto) { return true; });
  CHECK(several.remarks.size() == 1);
}

TEST_CASE("other devices have no port of HCCL's") {
  launcher_options o;
  worker_contract contract;
  take_hccl_port(o, contract, [](auto) { return false; });
  CHECK(contract.hccl_port == 0);
}

TEST_CASE("a Python without the vendor's plug-in is told of before the start") {
  auto o = of_one_node();
  o.python.program = "python3";
  const auto missing = plugin_missing(o);
  REQUIRE(missing);
  CHECK(*missing == "--accelerator ascend-npu: python3 has no module torch_npu, without which "
                    "PyTorch knows no Ascend NPU; install it there, or name another Python "
                    "(--python)");
  o.devices_said = false;
  CHECK_FALSE(plugin_missing(o));
  o.devices_said = true;
  o.no_python = true;
  CHECK_FALSE(plugin_missing(o));
  o.no_python = false;
  o.devices = accelerator::metax; // its build of PyTorch needs none
  CHECK_FALSE(plugin_missing(o));
  o.devices = accelerator::ascend;
  const device_tree modules;
  o.command = {modules.path() + "/train.py"};
  CHECK(plugin_missing(o));
  modules.add("torch_npu.py", "raise SystemExit('it was imported')\n");
  CHECK_FALSE(plugin_missing(o));
  o.command = {"/nowhere/train.py"};
  CHECK(plugin_missing(o));
  REQUIRE(::setenv("PYTHONPATH", modules.path().c_str(), 1) == 0);
  CHECK_FALSE(plugin_missing(o));
  ::unsetenv("PYTHONPATH");
}
