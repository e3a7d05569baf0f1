#include "launch/wiring/placement.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

TEST_CASE("the master is where torchrun's rendezvous would be") {
  const auto place = [](std::vector<std::string> arguments) {
    arguments.emplace_back("t.py");
    return place_master(std::get<launcher_options>(parse_launcher(arguments, {})));
  };
  using hosting = placement::hosting;
  CHECK(place({}).host == hosting::here);
  CHECK(place({}).master == ports::endpoint{"127.0.0.1", 0});
  CHECK(place({}).store_port == 0);
  // No node dials the master of a job on one node, so torchrun's port is the store's there.
  CHECK(place({"--master-port=1234"}).store_port == 1234);
  CHECK(place({"--master-port=1234"}).master == ports::endpoint{"127.0.0.1", 0});
  CHECK(place({"--nnodes=2", "--master-port=1234"}).store_port == 0);
  CHECK(place({"--nnodes=2"}).host == hosting::if_able);
  CHECK(place({"--nnodes=2"}).master == ports::endpoint{"127.0.0.1", 29500});
  CHECK(place({"--nnodes=2", "--node-rank=1"}).host == hosting::elsewhere);
  CHECK(place({"--nnodes=2", "--node-rank=0"}).host == hosting::here);
  const auto at_endpoint = place({"--nnodes=2", "--node-rank=0", "--rdzv-endpoint=head:1234"});
  CHECK(at_endpoint.host == hosting::if_able);
  CHECK(at_endpoint.master == ports::endpoint{"head", 1234});
  CHECK(place({"--rdzv-backend=c10d", "--rdzv-conf=is_host=no"}).host == hosting::elsewhere);
  CHECK(place({"--rdzv-backend=c10d", "--rdzv-conf=is_host=1"}).host == hosting::here);
}

TEST_CASE("the first node says how others join, and that they cannot at a loopback address") {
  const auto told = [](std::vector<std::string> arguments, const ports::endpoint& master) {
    arguments.insert(arguments.begin(), "--nnodes=2");
    arguments.emplace_back("t.py");
    auto o = std::get<launcher_options>(parse_launcher(arguments, {}));
    o.common.token_from = "/home/a/token";
    return told_to_others(o, master, "head");
  };
  CHECK(told({"--rdzv-endpoint=10.0.0.1:9"}, {"10.0.0.1", 9}).text ==
        "other nodes join with (and the token file /home/a/token): actor-launcher --nnodes=2 "
        "--rdzv-endpoint=10.0.0.1:9 t.py");
  const auto lonely = told({}, {"127.0.0.1", 29500});
  CHECK(lonely.severity == log::level::warning);
  CHECK(lonely.text == "only this machine reaches 127.0.0.1:29500: for nodes on others, give each "
                       "--rdzv-endpoint HOST:PORT with this machine's name or address (head)");
  CHECK(told({"--master-addr=127.0.0.1"}, {"127.0.0.1", 29500}).text ==
        "only this machine reaches 127.0.0.1:29500: for nodes on others, give each of them, and "
        "this one, --master-addr HOST with this machine's name or address (head)");
  // All nodes on one machine is a way to try things out.
  CHECK(told({"--rdzv-endpoint=localhost:9"}, {"localhost", 9}).severity == log::level::notice);
}

TEST_CASE("a node that does not run the master says which of its options only that one hears") {
  const auto told = [](std::vector<std::string> arguments, bool runs_here) {
    arguments.insert(arguments.end(), {"--nnodes=2", "--rdzv-endpoint=head:9", "t.py"});
    std::vector<std::string> names;
    for (const auto& line :
         lines_at_start(std::get<launcher_options>(parse_launcher(arguments, {})), {"head", 9},
                        runs_here, "here"))
      names.push_back(line.name);
    return names;
  };
  using names = std::vector<std::string>;
  CHECK(told({}, false) == names{"master_placed"});
  for (const auto* option : {"--hang-command=x", "--journal=j", "--mark-faulty=taint"}) {
    CHECK(told({option}, false) == names{"master_placed", "masters_options"});
    CHECK(told({option}, true) == names{"master_placed", "how_to_join"});
  }
  // Those of the job go to the master with the hello.
  CHECK(told({"--network-check", "--hang-timeout=9"}, false) == names{"master_placed"});
}
