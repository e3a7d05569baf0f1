#include "launch/options/options.hpp"
#include "launch/options/testing/launcher_line.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

TEST_CASE(
    "--auto_config takes the size from NODE_NUM and the GPUs, and checks four nodes and more") {
  auto machine = eight_cpus();
  machine.gpus = 8;
  const auto with = [&machine](const char* nodes, std::vector<std::string> more = {}) {
    machine.environment["NODE_NUM"] = nodes;
    more.insert(more.begin(), {"--auto_config", "--rdzv-endpoint=h:1"});
    more.emplace_back("t.py");
    return accepted(more, machine);
  };
  auto o = with("4");
  CHECK(o.nodes_min == 4);
  CHECK(o.nodes_max == 4);
  CHECK(o.processes_per_node == 8);
  CHECK(o.check.wanted);
  // Its master may be elsewhere.
  CHECK(in_words(o.of_job) == "--nnodes 4:4, --network-check");
  CHECK_FALSE(with("3").check.wanted);
  CHECK(with("3", {"--network-check"}).check.wanted);
  // Whatever was said goes before.
  o = with("4", {"--nnodes=1:2", "--nproc-per-node=3"});
  CHECK(o.nodes_max == 2);
  CHECK(o.processes_per_node == 3);
  CHECK_FALSE(o.check.wanted);
  CHECK(with("", {"--nnodes=2"}).nodes_max == 2);
  machine.gpus = 0;
  CHECK(with("2").processes_per_node == 1);
  machine.environment["NODE_NUM"] = "many";
  CHECK(refused({"--auto_config", "t.py"}, machine) ==
        "NODE_NUM: 'many' is no number of nodes (--auto_config)");
}

TEST_CASE("--numa-affinity binds workers and their memory, where there are GPUs") {
  auto machine = eight_cpus();
  machine.gpus = 2;
  auto o = accepted({"--numa-affinity", "t.py"}, machine);
  CHECK(o.numa == numa_binding::node);
  CHECK(o.memory == memory_binding::preferred);
  CHECK(accepted({"--numa-affinity", "--membind-policy=bind", "t.py"}, machine).memory ==
        memory_binding::only);
  CHECK(accepted({"--numa-affinity", "--membind-policy=none", "t.py"}, machine).memory ==
        memory_binding::none);
  CHECK(mentions(refused({"--numa-affinity", "--numa-binding=node", "t.py"}, machine),
                 "exclude each other"));
  o = accepted({"--membind-policy=bind", "t.py"}, machine);
  CHECK(o.memory == memory_binding::none);
  CHECK(o.remarks ==
        std::vector<std::string>{"--membind-policy has no effect without --numa-affinity"});
  machine.gpus = 0;
  o = accepted({"--numa-affinity", "t.py"}, machine);
  CHECK(o.numa == numa_binding::none);
  CHECK(o.remarks.size() == 1);
}
