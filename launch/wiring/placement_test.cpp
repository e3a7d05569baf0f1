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
