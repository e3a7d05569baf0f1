#include "tests/actors/node_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

struct replicating_node : node_stage {
  replicating_node() : node_stage("a") {
    begin();
    runs();
  }

  void requests(local_rank local) {
    ckpt::snapshot_to_copy i;
    i.local = i.rank = local;
    i.sequence = i.by.parity = 1;
    i.step = 100;
    i.by.members = {{local, "a:1"}, {local + 2, "b:1"}};
    copies->request(i);
    settle();
  }
  void copy_ends(const result<void>& how) {
    copies->copy_ends(how);
    settle();
  }
};

using told = std::vector<std::string>;

} // namespace

/// What becomes of snapshots that a node's training processes want held by others.
TEST_SUITE("node: replication") {
  TEST_CASE("copies are made, and only the process hears of them") {
    replicating_node s;
    s.requests(0);
    s.requests(1);
    CHECK(s.copies->copying() == 2);
    s.copy_ends({});
    const auto why = std::string("rank 3 at b:1: the connection was closed");
    s.copy_ends(failure(errc::closed, why));
    CHECK(s.copies->finalized == told{"rank 0: held by others", "rank 1: " + why});
    CHECK(s.was_said("replicator: step 100 of rank 1 is not held by other nodes: " + why));
    CHECK(s.hears() == "");
  }

  TEST_CASE("a replicator that crashes hears of the requests again, and each is answered once") {
    replicating_node s;
    s.requests(0);
    s.crash(s.at.replicator);
    CHECK(s.copies->copying() == 1);
    s.copy_ends({});
    CHECK(s.copies->finalized == told{"rank 0: held by others"});
    CHECK(s.processes->take_deeds() == "");
  }

  TEST_CASE("a crash of the replicator or the persister leaves the other one alone") {
    replicating_node s;
    const auto persister = s.at.persister.current();
    s.crash(s.at.replicator);
    CHECK(s.at.persister.current() == persister);
    s.requests(0);
    const auto replicator = s.at.replicator.current();
    s.crash(s.at.persister);
    CHECK(s.at.replicator.current() == replicator);
    CHECK(s.copies->copying() == 1);
    s.copy_ends({});
    CHECK(s.copies->finalized == told{"rank 0: held by others"});
  }

  TEST_CASE("which node runs which ranks is told to the host, and again after a crash") {
    replicating_node s;
    CHECK(s.copies->owners_of.empty());
    s.crash(s.at.replicator); // the master has told nothing yet
    s.says(owners(1, {"a", "b"}).any());
    CHECK(s.copies->owners_of == std::vector<generation>{generation{1}});
    s.crash(s.at.replicator);
    CHECK(s.copies->owners_of == std::vector<generation>{generation{1}, generation{1}});
  }

  TEST_CASE("no copy holds up the end of a job") {
    replicating_node s;
    s.requests(0);
    s.ends("g1/0", exited(0));
    s.ends("g1/1", exited(0));
    CHECK(s.hears() == "Finished g1 a");
  }
}
