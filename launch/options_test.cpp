#include "launch/options.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

machine_facts eight_cpus() {
  machine_facts m;
  m.cpus = 8;
  return m;
}

launcher_options accepted(const std::vector<std::string>& arguments,
                          const machine_facts& machine = eight_cpus()) {
  const auto p = parse_launcher(arguments, machine);
  if (const auto* e = std::get_if<error>(&p))
    FAIL(e->what);
  return std::get<launcher_options>(p);
}

std::string refused(const std::vector<std::string>& arguments,
                    const machine_facts& machine = eight_cpus()) {
  const auto p = parse_launcher(arguments, machine);
  const auto* e = std::get_if<error>(&p);
  REQUIRE(e);
  CHECK(e->what.find('\n') == std::string::npos);
  return e->what;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("everything after the script belongs to the script") {
  const auto o = accepted({"--nproc-per-node", "2", "train.py", "--nnodes", "7", "-x", "--", "y"});
  CHECK(o.processes_per_node == 2);
  CHECK(o.nodes_max == 1);
  CHECK(o.command == std::vector<std::string>{"train.py", "--nnodes", "7", "-x", "--", "y"});
}

TEST_CASE("a double dash ends the launcher's own options") {
  CHECK(accepted({"--standalone", "--", "train.py", "a"}).command ==
        std::vector<std::string>{"train.py", "a"});
}

TEST_CASE("options may be written with dashes, underscores and equals signs") {
  CHECK(accepted({"--nproc_per_node=3", "t.py"}).processes_per_node == 3);
  CHECK(accepted({"--nproc-per-node=3", "t.py"}).processes_per_node == 3);
  CHECK(accepted({"--max_restarts", "5", "t.py"}).max_restarts == 5);
  CHECK(accepted({"--no_python", "t"}).no_python);
}

TEST_CASE("the last of several values wins") {
  CHECK(accepted({"--nnodes=1", "--nnodes=2:4", "t.py"}).nodes_min == 2);
}

TEST_CASE("defaults come from PET_ variables and the command line beats them") {
  auto machine = eight_cpus();
  machine.environment = {
      {"PET_NPROC_PER_NODE", "4"}, {"PET_STANDALONE", "1"}, {"PET_NO_PYTHON", "0"}};
  const auto from_environment = accepted({"t.py"}, machine);
  CHECK(from_environment.processes_per_node == 4);
  CHECK(from_environment.standalone);
  CHECK_FALSE(from_environment.no_python);
  CHECK(accepted({"--nproc-per-node=2", "t.py"}, machine).processes_per_node == 2);
}

TEST_CASE("processes per node may be counted off the machine") {
  auto machine = eight_cpus();
  CHECK(accepted({"--nproc-per-node=cpu", "t.py"}, machine).processes_per_node == 8);
  CHECK(accepted({"--nproc-per-node=auto", "t.py"}, machine).processes_per_node == 8);
  CHECK(mentions(refused({"--nproc-per-node=gpu", "t.py"}, machine), "no NVIDIA GPU"));
  machine.gpus = 2;
  CHECK(accepted({"--nproc-per-node=auto", "t.py"}, machine).processes_per_node == 2);
}

TEST_CASE("a node range needs 0 < MIN <= MAX") {
  CHECK(parse_nodes("2:20") == std::pair{2u, 20u});
  CHECK(parse_nodes("3") == std::pair{3u, 3u});
  for (const auto* wrong :
       {"", "0", "2:1", "2:20:30", "a", "1:", ":1", "-1", "1.5", "99999999999999999999", "20000"})
    CHECK_MESSAGE(!parse_nodes(wrong), wrong);
}

TEST_CASE("an endpoint is a host, host:port or [v6]:port") {
  CHECK(*parse_endpoint("h", 7) == ports::endpoint{"h", 7});
  CHECK(*parse_endpoint("h:0", 7) == ports::endpoint{"h", 0});
  CHECK(*parse_endpoint("[::1]:80", 7) == ports::endpoint{"::1", 80});
  CHECK(*parse_endpoint("[::1]", 7) == ports::endpoint{"::1", 7});
  for (const auto* wrong :
       {"", ":1", "h:", "h:x", "h:65536", "::1", "[::1", "[::1]80", "[::1]:", "h:-1"})
    CHECK_MESSAGE(!parse_endpoint(wrong, 7), wrong);
}

TEST_CASE("rendezvous settings take torchrun's keys and ignore unknown ones") {
  const auto s = parse_rendezvous_settings("join_timeout=5,unheard=x,last_call_timeout=0.5");
  REQUIRE(s);
  CHECK(*s->join_timeout == 5s);
  CHECK(*s->last_call_timeout == 500ms);
  CHECK_FALSE(s->read_timeout);
  for (const auto* wrong : {"join_timeout", "join_timeout=", "=5", "join_timeout=x",
                            "join_timeout=-1", "join_timeout=nan"})
    CHECK_MESSAGE(!parse_rendezvous_settings(wrong), wrong);
}

TEST_CASE("bad input gets one line that names the thing") {
  CHECK(mentions(refused({}), "which script"));
  CHECK(mentions(refused({"--frobnicate", "t.py"}), "--frobnicate"));
  CHECK(mentions(refused({"--numa-binding", "node", "t.py"}),
                 "--numa-binding is an option of torchrun that is not built yet"));
  CHECK(mentions(refused({"--tee=4", "t.py"}), "--tee"));
  CHECK(mentions(refused({"--nproc-per-node=0", "t.py"}), "--nproc-per-node"));
  CHECK(mentions(refused({"--nproc-per-node=100000", "t.py"}), "1 to 1024"));
  CHECK(mentions(refused({"--nnodes=2:1", "t.py"}), "--nnodes"));
  CHECK(mentions(refused({"--node-rank=2", "--nnodes=2", "t.py"}), "--node-rank 2"));
  CHECK(mentions(refused({"--max-restarts=-1", "t.py"}), "max-restarts"));
  CHECK(mentions(refused({"--rdzv-endpoint=a:b:c", "t.py"}), "--rdzv-endpoint"));
  CHECK(mentions(refused({"--rdzv-backend=etcd", "t.py"}), "rdzv-backend"));
  CHECK(mentions(refused({"-m", "--no-python", "t"}), "exclude each other"));
  CHECK(mentions(refused({"--certificate=c.pem", "t.py"}), "--key"));
  CHECK(mentions(refused({"--standalone", "--nnodes=2", "t.py"}), "--standalone"));
}

TEST_CASE("help names every option and runs nothing") {
  const auto p = parse_launcher({"--help"}, eight_cpus());
  const auto* text = std::get_if<just_print>(&p);
  REQUIRE(text);
  for (const auto* name :
       {"--nnodes", "--nproc-per-node", "--rdzv-endpoint", "--max-restarts", "--json-log"})
    CHECK_MESSAGE(mentions(text->text, name), name);
}

TEST_CASE("a shell needs a master and something to show") {
  CHECK(std::holds_alternative<error>(parse_shell({"tree"}, eight_cpus())));
  CHECK(std::holds_alternative<error>(parse_shell({"--master", "h:1"}, eight_cpus())));
  const auto p = parse_shell({"--master", "h:1", "tree"}, eight_cpus());
  REQUIRE(std::holds_alternative<shell_options>(p));
  CHECK(std::get<shell_options>(p).master == ports::endpoint{"h", 1});
}
