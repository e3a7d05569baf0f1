#include "tests/actors/master_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

struct saving_master : master_stage {
  saving_master() {
    begin();
    join("a");
    join("b");
    run_two();
  }
  void relink() {
    for (const auto* node : {"a", "b"}) {
      join(node, running_in(1));
      hears(node);
    }
  }
};

} // namespace

/// How nodes hear that a step is complete.
TEST_SUITE("master: saving") {
  TEST_CASE("a step of two nodes becomes complete") {
    saving_master s;
    s.says("a", shard_written("a", 0).any());
    CHECK(s.hears("a") == "");
    s.says("b", shard_written("b", 1).any());
    CHECK(s.hears("a") == "CommitStep g1 step 100: a/rank_0.pt b/rank_1.pt");
    s.says("a", step_committed("a", true).any());
    CHECK(s.hears("b") == "CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
    s.says("b", step_committed("b", true).any());
    CHECK(s.hears("a") == "StepFinalized g1 step 100 complete");
    CHECK(s.hears("b") == "StepFinalized g1 step 100 complete");
  }

  TEST_CASE("a shard that never comes is given up in time") {
    saving_master s;
    s.says("a", shard_written("a", 0).any());
    s.pass(600s);
    CHECK(s.hears("a") == "StepFinalized g1 step 100 not: shard 1 of 2 of step 100 was not written "
                          "within 10 min");
  }

  TEST_CASE("a catalog that crashes knows nothing: links end, and all is said again on new ones") {
    saving_master s;
    s.says("a", shard_written("a", 0).any());
    s.crash(s.at.catalog);
    s.pass(1s);
    CHECK(s.who_lost_its_link() == "a b");
    s.relink();
    s.says("b", shard_written("b", 1).any());
    CHECK(s.hears("a") == "");
    s.says("a", shard_written("a", 0).any());
    CHECK(s.hears("a") == "CommitStep g1 step 100: a/rank_0.pt b/rank_1.pt");
    CHECK(s.endings.empty());
  }
}
