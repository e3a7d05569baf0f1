#include "launch/options/accelerator.hpp"

#include "launch/options/testing/launcher_line.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

namespace {

machine_facts with_devices(accelerator kind, unsigned count) {
  auto machine = eight_cpus();
  machine.other_devices[kind] = count;
  return machine;
}

std::uint32_t processes(const std::vector<std::string>& options, const machine_facts& machine) {
  auto words = options;
  words.emplace_back("t.py");
  return accepted(words, machine).processes_per_node;
}

} // namespace

TEST_CASE("devices of all vendors that DLRover names are counted") {
  for (const auto& facts : all_accelerators()) {
    CAPTURE(facts.word);
    auto machine = with_devices(facts.kind, 4);
    machine.gpus = facts.kind == accelerator::nvidia ? 4 : 0;
    const auto option = std::string("--accelerator=") + facts.word;
    CHECK(processes({option, "--nproc-per-node=auto"}, machine) == 4);
    CHECK(processes({option, "--nproc-per-node=gpu"}, machine) == 4);
    CHECK(accepted({option, "t.py"}, machine).devices == facts.kind);
    // A file of a device alone says nothing of the training.
    const bool is_default = facts.kind == accelerator::nvidia;
    CHECK(processes({"--nproc-per-node=auto"}, machine) == (is_default ? 4 : machine.cpus));
    CHECK(accepted({"t.py"}, machine).devices == accelerator::nvidia);
    machine.environment[facts.visible.front()] = "0,2";
    CHECK(processes({option, "--nproc-per-node=auto"}, machine) == 2);
    machine.environment[facts.visible.front()] = "0,2,7,1";
    CHECK(processes({option, "--nproc-per-node=auto"}, machine) == 2);
  }
}

TEST_CASE("npu counts Ascend's devices, whatever else there is") {
  auto machine = with_devices(accelerator::ascend, 8);
  machine.gpus = 2;
  CHECK(processes({"--nproc-per-node=npu"}, machine) == 8);
  CHECK(processes({"--nproc-per-node=auto"}, machine) == 2);
  CHECK(accepted({"--nproc-per-node=npu", "t.py"}, machine).devices == accelerator::ascend);
  CHECK(mentions(refused({"--accelerator=nvidia.com/gpu", "--nproc-per-node=npu", "t.py"}, machine),
                 "--nproc-per-node npu: with --accelerator nvidia.com/gpu there are none"));
  CHECK(processes({"--accelerator=ascend-npu", "--nproc-per-node=auto"}, machine) == 8);
  CHECK(refused({"--nproc-per-node=npu", "t.py"}) ==
        "--nproc-per-node npu: this machine shows no Ascend NPU (/dev/davinci0, "
        "ASCEND_RT_VISIBLE_DEVICES)");
}

TEST_CASE("of ASCEND_RT_VISIBLE_DEVICES nothing counts behind a blank, as for CANN") {
  auto machine = with_devices(accelerator::ascend, 8);
  machine.environment["ASCEND_RT_VISIBLE_DEVICES"] = "1, 2,3";
  CHECK(processes({"--nproc-per-node=npu"}, machine) == 1);
  machine.environment["ASCEND_RT_VISIBLE_DEVICES"] = "1,2,-1,3";
  CHECK(processes({"--nproc-per-node=npu"}, machine) == 2);
}

TEST_CASE("MetaX's devices may be selected by CUDA's variable too") {
  auto machine = with_devices(accelerator::metax, 8);
  machine.environment["CUDA_VISIBLE_DEVICES"] = "0,1,2";
  const std::vector<std::string> words{"--accelerator=metax-tech.com/gpu", "--nproc-per-node=gpu"};
  CHECK(processes(words, machine) == 3);
  machine.environment["MACA_VISIBLE_DEVICES"] = "5";
  CHECK(processes(words, machine) == 1);
}

TEST_CASE("an accelerator of which there is no device is refused with what to do") {
  CHECK(refused({"--accelerator=ascend-npu", "t.py"}) ==
        "--accelerator ascend-npu: this machine shows no Ascend NPU (/dev/davinci0); give its "
        "devices to the container, or leave the option out");
  CHECK(mentions(refused({"--accelerator=metax-tech.com/gpu", "t.py"}), "/dev/mxcd"));
  CHECK(mentions(refused({"--accelerator=other", "t.py"}), "metax-tech.com/gpu"));
  CHECK(accepted({"--accelerator=nvidia.com/gpu", "t.py"}).devices == accelerator::nvidia);
}

TEST_CASE("a kind that was found and not said changes nothing") {
  const auto o = accepted({"t.py"}, with_devices(accelerator::ascend, 1));
  CHECK(o.remarks.empty());
  CHECK_FALSE(o.devices_said);
  CHECK_FALSE(o.hccl_port);
  CHECK(accepted({"--accelerator=ascend-npu", "t.py"}, with_devices(accelerator::ascend, 1))
            .remarks.empty());
}

TEST_CASE("what the check before the start does not measure is told") {
  const auto machine = with_devices(accelerator::ascend, 1);
  const auto lines =
      accepted({"--accelerator=ascend-npu", "--network-check", "t.py"}, machine).remarks;
  REQUIRE(lines.size() == 1);
  CHECK(lines.front() == "--network-check looks at each Ascend NPU through PyTorch, and at nodes "
                         "with each other over TCP: hccl is not measured");
  CHECK(accepted({"--network-check", "t.py"}).remarks.empty());
}

TEST_CASE("HCCL's first port is --training_port's, unless its own variable is set") {
  auto machine = with_devices(accelerator::ascend, 8);
  const auto port = [&machine](const std::vector<std::string>& options) {
    auto words = options;
    words.insert(words.end(), {"--accelerator=ascend-npu", "t.py"});
    return accepted(words, machine).hccl_port;
  };
  CHECK(port({}) == 60'000);
  CHECK(port({"--training_port=50000"}) == 50'000);
  CHECK_FALSE(port({"--training_port=0"}));
  CHECK(mentions(refused({"--accelerator=ascend-npu", "--training_port=65530", "t.py"}, machine),
                 "--training_port: '65530'"));
  machine.environment["HCCL_IF_BASE_PORT"] = "64000";
  CHECK_FALSE(port({"--training_port=50000"}));
  CHECK_FALSE(accepted({"--training_port=50000", "t.py"}).hccl_port);
}
