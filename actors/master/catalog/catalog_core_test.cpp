#include "actors/master/catalog/catalog_core.hpp"

#include "actors/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// The catalog as its decisions show it.
struct story {
  std::string wrote(const node_name& node, std::uint32_t shard, const saving& s = {}) {
    return text(core.shard_reported(now, shard_written(node, shard, s)));
  }
  std::string could_not(const node_name& node, std::uint32_t shard, const saving& s = {}) {
    return text(core.shard_reported(now, shard_failed(node, shard, s)));
  }
  std::string completed(const node_name& node, bool complete, const saving& s = {}) {
    return text(core.step_committed(now, step_committed(node, complete, s)));
  }
  /// It has found another node's manifest in its directory.
  std::string finds_completed(const node_name& node, const saving& s = {}) {
    return text(core.step_committed(now, step_committed(node, true, s, true)));
  }
  std::string waits(duration d) {
    now += d;
    return text(core.tick(now));
  }
  /// Both shards are there, from a and b; a is asked to complete the step.
  void gathers(const saving& s = {}) {
    wrote("a", 0, s);
    REQUIRE(wrote("b", 1, s).find("to a: CommitStep") == 0);
  }

  catalog_core core{messages::author("master/catalog")};
  instant now = dawn;
};

const saving step_101{101, 1, 2};
const saving again{100, 2, 2}; // in generation 2
const std::string not_known = "step 100 is complete on node a, and not known to be so in the "
                              "directories of nodes that have not reported";

} // namespace

TEST_SUITE("catalog_core: a step") {
  TEST_CASE("becomes complete when all have written, one node has, and then the others") {
    story s;
    CHECK(s.core.in_words() == "no step is being saved");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.wrote("b", 1) == "");
    CHECK(s.core.in_words() == "1 step being saved, the newest 100");
    CHECK(s.core.next_wakeup() == dawn + 600s);
    CHECK(s.wrote("a", 0) == "to a: CommitStep g1 step 100: a/rank_0.pt b/rank_1.pt");
    CHECK(s.completed("a", true) ==
          "to b: CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete");
    CHECK(s.core.in_words() ==
          "no step is being saved; the last complete one is step 100 at /ckpt");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("of one node is complete when that node has made it so") {
    story s;
    s.wrote("a", 0);
    CHECK(s.wrote("a", 1) == "to a: CommitStep g1 step 100: a/rank_0.pt a/rank_1.pt");
    CHECK(s.completed("a", true) == "to a: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("is told of again to a node that repeats a report") {
    story s;
    s.gathers();
    s.completed("a", true);
    s.completed("b", true);
    CHECK(s.wrote("b", 1) == "to b: StepFinalized g1 step 100 complete");
    CHECK(s.completed("b", true) == "");
  }

  TEST_CASE("is another one in another generation, or at another number") {
    story s;
    s.gathers();
    CHECK(s.wrote("a", 0, again) == "");
    CHECK(s.wrote("b", 1, {101, 2, 2}) == "");
    CHECK(s.core.in_words() == "3 steps being saved, the newest 100");
  }
}

TEST_SUITE("catalog_core: a step that is not complete") {
  TEST_CASE(
      "a shard that could not be written ends it at once, also for a node that reports later") {
    story s;
    s.wrote("a", 0);
    const std::string why =
        "StepFinalized g1 step 100 not: shard 1 of 2 of step 100 was not written "
        "on node b: no space left on device";
    CHECK(s.could_not("b", 1) == "to a,b: " + why);
    CHECK(s.wrote("c", 0) == "to c: " + why);
  }

  TEST_CASE("shards that no node writes are named when their time is up") {
    story s;
    const saving of_four{100, 1, 4};
    s.wrote("a", 0, of_four);
    CHECK(s.waits(600s - 1ms) == "");
    CHECK(s.waits(1ms) == "to a: StepFinalized g1 step 100 not: shard 1 of 4 of step 100 and 2 "
                          "others were not written within 10 min");
  }

  TEST_CASE("is given up when a newer generation saves there: the missing shards will not come") {
    story s;
    s.wrote("a", 0);
    CHECK(s.wrote("a", 0, again) == "to a: StepFinalized g1 step 100 not: shard 1 of 2 of step 100 "
                                    "was not written before generation 2 saved");
    CHECK(s.wrote("b", 1) == "to b: StepFinalized g1 step 100 not: shard 1 of 2 of step 100 "
                             "was not written before generation 2 saved");
  }

  TEST_CASE("one whose shards are all there is completed, whatever a newer generation does") {
    story s;
    s.gathers();
    CHECK(s.wrote("a", 0, again) == "");
    s.completed("a", true);
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("nodes that do not mean the same step are told so") {
    story s;
    s.wrote("a", 0);
    const saving of_four{100, 1, 4};
    CHECK(
        s.wrote("b", 1, of_four) ==
        "to a,b: StepFinalized g1 step 100 not: step 100 has 2 shards of 2 ranks, and node b says "
        "4 of 4");
    s.wrote("a", 0, step_101);
    CHECK(
        s.wrote("b", 0, step_101) ==
        "to a,b: StepFinalized g1 step 101 not: shard 0 of 2 of step 101 was written by node a and "
        "by node b");
  }

  TEST_CASE("numbers that mean nothing are refused, and no step is opened for them") {
    story s;
    CHECK(s.wrote("a", 2).find("not: node a reports shard 2 of 2 of step 100") !=
          std::string::npos);
    const saving of_none{100, 1, 0};
    CHECK(s.wrote("a", 0, of_none).find("not: node a says that step 100 has 0 shards") !=
          std::string::npos);
    CHECK(s.core.in_words() == "no step is being saved");
  }

  TEST_CASE("the oldest is given up when there are too many") {
    story s;
    for (std::uint64_t i = 0; i < limits::steps_open_max; ++i) {
      CHECK(s.wrote("a", 0, {i, 1, 2}) == "");
      s.now += 1ms;
    }
    CHECK(
        s.wrote("a", 0, {1'000, 1, 2}) ==
        "to a: StepFinalized g1 step 0 not: step 0 was given up for step 1000: 64 steps are being "
        "saved at once");
  }

  TEST_CASE("how it ended is forgotten after very many others") {
    story s;
    for (std::uint64_t i = 0; i <= limits::steps_finalized_kept; ++i)
      s.could_not("a", 0, {i, 1, 1});
    CHECK(s.wrote("b", 0, {1, 1, 2}).find("to b: StepFinalized") == 0);
    CHECK(s.wrote("b", 0, {0, 1, 2}) == "");
  }
}

TEST_SUITE("catalog_core: several steps at once") {
  TEST_CASE("with a complete one nodes hear which older save is open, and keep its files") {
    story s;
    const saving step_102{102, 1, 2};
    for (const auto& each : {saving{}, step_101, step_102})
      s.wrote("a", 0, each);
    s.wrote("b", 1, step_102);
    s.completed("a", true, step_102);
    CHECK(s.completed("b", true, step_102) ==
          "to a,b: StepFinalized g1 step 102 complete, save 100 is open");
    REQUIRE(s.could_not("b", 1).find("StepFinalized g1 step 100 not") != std::string::npos);
    // What it was at the step's end is said again: less is removed than might be, never more.
    CHECK(s.wrote("b", 1, step_102) ==
          "to b: StepFinalized g1 step 102 complete, save 100 is open");
    s.wrote("b", 1, step_101);
    s.completed("a", true, step_101);
    CHECK(s.completed("b", true, step_101) == "to a,b: StepFinalized g1 step 101 complete");
  }

  TEST_CASE("a save of a later step is none of those, and one of an older generation is") {
    story s;
    s.wrote("a", 0, step_101);
    s.gathers();
    s.completed("a", true);
    s.wrote("c", 2, {99, 1, 3});
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete, save 99 is open");
    s.gathers(again);
    s.completed("a", true, again);
    s.wrote("a", 0, {98, 1, 2});
    CHECK(s.completed("b", true, again) ==
          "to a,b: StepFinalized g2 step 100 complete, save 98 is open");
  }
}

TEST_SUITE("catalog_core: nodes with directories of their own") {
  TEST_CASE("a step is not complete before all that wrote have completed it in theirs") {
    story s;
    s.gathers();
    s.completed("a", true);
    CHECK(s.waits(600s - 1ms) == "");
    CHECK(s.waits(1ms) ==
          "to a,b: StepFinalized g1 step 100 not: step 100 is complete on node a, and not known to "
          "be so in the directory of node b, which did not answer in time");
  }

  TEST_CASE("where one has found another's manifest it is complete without the rest") {
    story s;
    const saving of_three{100, 1, 3}, next{101, 1, 2};
    s.wrote("a", 0, of_three);
    s.wrote("b", 1, of_three);
    s.wrote("c", 2, of_three);
    s.completed("a", true, of_three);
    CHECK(s.finds_completed("b", of_three) == "");
    CHECK(s.waits(600s) == "to a,b,c: StepFinalized g1 step 100 complete");
    // The next step of that place, too.
    s.gathers(next);
    s.completed("a", true, next);
    CHECK(s.waits(600s) == "to a,b: StepFinalized g1 step 101 complete");
  }
}

TEST_SUITE("catalog_core: which node completes it") {
  TEST_CASE("a committer that is lost is replaced by another node that wrote") {
    story s;
    s.gathers();
    CHECK(s.waits(limits::commit_within - 1ms) == "");
    CHECK(s.waits(1ms) == "to b: CommitStep g1 step 100: a/rank_0.pt b/rank_1.pt");
    CHECK(s.completed("b", true) ==
          "to a: CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
    CHECK(s.finds_completed("a") == "to a,b: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("the first of them may still be the first to have done it") {
    story s;
    s.gathers();
    s.waits(limits::commit_within);
    CHECK(s.completed("a", true) ==
          "to b: CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("when none of them does it is not complete") {
    story s;
    s.gathers();
    s.waits(limits::commit_within);
    CHECK(s.waits(limits::commit_within) == "");
    CHECK(s.core.next_wakeup() == dawn + 600s);
    CHECK(s.waits(600s - 2 * limits::commit_within - 1ms) == "");
    CHECK(s.waits(1ms) ==
          "to a,b: StepFinalized g1 step 100 not: step 100 is written, and whether it is complete "
          "is not known: 2 nodes did not answer within 10 min");
  }

  TEST_CASE("each of them may answer as long as a save may take: its disk may be slow") {
    story s;
    s.gathers();
    for (int asked = 0; asked < 2; ++asked)
      s.waits(limits::commit_within);
    s.waits(400s);
    CHECK(s.completed("a", true) ==
          "to b: CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("a committer that cannot says why") {
    story s;
    s.gathers();
    CHECK(s.completed("b", false) == "");
    CHECK(s.completed("a", false) ==
          "to a,b: StepFinalized g1 step 100 not: step 100 could not be made "
          "complete on node a: read-only file system");
  }

  TEST_CASE("a node that cannot follow says why") {
    story s;
    s.gathers();
    s.completed("a", true);
    CHECK(s.completed("b", false) ==
          "to a,b: StepFinalized g1 step 100 not: step 100 is complete on node a, and could not be "
          "made so on node b: read-only file system");
  }

  TEST_CASE("a node that repeats its report while it should be at work is asked again") {
    story s;
    s.gathers();
    CHECK(s.wrote("b", 1) == "");
    CHECK(s.wrote("a", 0) == "to a: CommitStep g1 step 100: a/rank_0.pt b/rank_1.pt");
    s.completed("a", true);
    CHECK(s.wrote("a", 0) == "");
    CHECK(s.wrote("b", 1) ==
          "to b: CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
  }
}

TEST_SUITE("catalog_core: after a master's end") {
  TEST_CASE("what was complete before is not completed again") {
    story s;
    s.wrote("a", 0);
    CHECK(s.completed("a", true) == "");
    CHECK(s.wrote("b", 1) ==
          "to b: CommitStep g1 step 100, complete elsewhere: a/rank_0.pt b/rank_1.pt");
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("a node that has heard the end already does not come back, nor is waited for long") {
    story s;
    s.wrote("a", 0);
    s.completed("a", true);
    CHECK(s.waits(limits::commit_within - 1ms) == "");
    CHECK(s.waits(1ms) == "to a: StepFinalized g1 step 100 not: " + not_known);
  }

  TEST_CASE("nor when a newer generation saves") {
    story s;
    s.wrote("a", 0);
    s.completed("a", true);
    CHECK(s.wrote("a", 0, again) == "to a: StepFinalized g1 step 100 not: " + not_known);
  }

  TEST_CASE("in one directory of all nodes the step is complete, whatever they have heard") {
    story s;
    s.wrote("b", 1);
    s.finds_completed("b");
    CHECK(s.waits(limits::commit_within) == "to b: StepFinalized g1 step 100 complete");
    s.wrote("a", 0, step_101);
    s.completed("a", true, step_101);
    CHECK(s.wrote("a", 0, again) == "to a: StepFinalized g1 step 101 complete");
  }

  TEST_CASE("a committed step of which no shard was reported means nothing") {
    story s;
    CHECK(s.completed("a", true) == "");
    CHECK(s.core.in_words() == "no step is being saved");
  }
}
