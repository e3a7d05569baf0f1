#include "launch/worker/numa.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <sched.h>
#include <unistd.h>

using namespace troupe::launch;

namespace {

/// Two sockets of two NUMA nodes each; 8 CPUs on a node: 4 cores of two threads (n and n + 32),
/// which share caches two by two. GPUs 0 and 1 are at node 0, GPU 2 is at node 3.
numa_topology large() {
  numa_topology t;
  t.gpus = {0, 0, 3};
  for (unsigned cpu = 0; cpu < 64; ++cpu) {
    const auto first = cpu % 32;
    t.allowed.insert(cpu);
    t.nodes[first / 4 % 4].insert(cpu);
    t.core[cpu] = first;
    t.cache[cpu] = first / 2 * 2;
    t.socket[cpu] = first / 4 % 4 / 2;
  }
  for (auto& [node, cpus] : t.nodes)
    for (auto at = cpus.begin(); at != cpus.end();)
      at = *at % 32 >= 16 ? cpus.erase(at) : std::next(at);
  return t;
}

using lists = std::vector<std::string>;

} // namespace

TEST_CASE("lists of CPUs are written and read as the kernel does") {
  CHECK(cpu_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(cpu_list({}) == "");
  CHECK(parse_cpu_list("0-2,5,7-8\n") == cpu_set{0, 1, 2, 5, 7, 8});
  CHECK(parse_cpu_list("").empty());
  CHECK(parse_cpu_list("x,3-,4").count(4) == 1);
}

TEST_CASE("a worker is bound to its GPU's node, socket, share of cores, or cache") {
  const auto t = large();
  CHECK(*cpus_near_gpus(numa_binding::node, t, 3) ==
        lists{"0-3,32-35", "0-3,32-35", "12-15,44-47"});
  CHECK(*cpus_near_gpus(numa_binding::socket, t, 1) == lists{"0-7,32-39"});
  CHECK(*cpus_near_gpus(numa_binding::exclusive, t, 3) ==
        lists{"0-1,32-33", "2-3,34-35", "12-15,44-47"});
  CHECK(*cpus_near_gpus(numa_binding::core_complex, t, 2) == lists{"0-1,32-33", "2-3,34-35"});
  CHECK(cpus_near_gpus(numa_binding::none, t, 9)->empty());
  CHECK(memory_near_gpus(memory_binding::preferred, t, 3) ==
        lists{"--preferred=0", "--preferred=0", "--preferred=3"});
  CHECK(memory_near_gpus(memory_binding::only, t, 1) == lists{"--membind=0"});
  CHECK(memory_near_gpus(memory_binding::none, t, 3).empty());
}

TEST_CASE(
    "only CPUs this process may use count, and cores that do not come out even go to the first") {
  auto t = large();
  t.allowed = {0, 1, 2, 32};
  CHECK(*cpus_near_gpus(numa_binding::exclusive, t, 2) == lists{"0-1,32", "2"});
  CHECK(*cpus_near_gpus(numa_binding::core_complex, t, 2) == lists{"0-1,32", "2"});
  t.allowed = {0, 32};
  CHECK_FALSE(cpus_near_gpus(numa_binding::exclusive, t, 2));
  CHECK_FALSE(cpus_near_gpus(numa_binding::node, t, 3));
}

TEST_CASE("without enough GPUs there is nothing to be near to") {
  auto t = large();
  CHECK_FALSE(cpus_near_gpus(numa_binding::node, t, 4));
  t.gpus.clear();
  CHECK_FALSE(cpus_near_gpus(numa_binding::node, t, 1));
}

TEST_CASE("the machine is read from its files") {
  namespace fs = std::filesystem;
  const auto root = fs::temp_directory_path() / ("numa_test." + std::to_string(::getpid()));
  const auto file = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  file("sys/devices/system/node/node0/cpulist", "0-1\n");
  file("sys/devices/system/node/node1/cpulist", "2-3\n");
  file("sys/devices/system/node/possible", "0-1\n");
  file("sys/devices/system/cpu/cpu2/topology/physical_package_id", "1\n");
  file("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2-3\n");
  file("sys/devices/system/cpu/cpu2/cache/index0/type", "Instruction\n");
  file("sys/devices/system/cpu/cpu2/cache/index0/level", "9\n");
  file("sys/devices/system/cpu/cpu2/cache/index0/shared_cpu_list", "7\n");
  file("sys/devices/system/cpu/cpu2/cache/index1/type", "Unified\n");
  file("sys/devices/system/cpu/cpu2/cache/index1/level", "3\n");
  file("sys/devices/system/cpu/cpu2/cache/index1/shared_cpu_list", "0-3\n");
  file("proc/driver/nvidia/gpus/0000:1a:00.0/information", "Model: x\nGPU UUID: \t GPU-aa\n");
  file("proc/driver/nvidia/gpus/0000:3b:00.0/information", "GPU UUID: \t GPU-bb\n");
  file("sys/bus/pci/devices/0000:1a:00.0/numa_node", "-1\n");
  file("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");

  machine_facts machine;
  const auto t = read_numa_topology(root.string(), machine);
  CHECK(t.gpus == std::vector<unsigned>{0, 1});
  CHECK(t.nodes.at(1) == cpu_set{2, 3});
  CHECK(t.socket.at(2) == 1);
  CHECK(t.core.at(2) == 2);
  CHECK(t.cache.at(2) == 0);
  CHECK_FALSE(t.allowed.empty());
  machine.environment["CUDA_VISIBLE_DEVICES"] = "GPU-b,0,7,1";
  CHECK(read_numa_topology(root.string(), machine).gpus == std::vector<unsigned>{1, 0});
  fs::remove_all(root);
  CHECK(read_numa_topology(root.string(), machine).gpus.empty());
}
