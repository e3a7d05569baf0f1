#include "tests/actors/planner_story.hpp"

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

/// What a planner that begins anew makes of the journal, and of the nodes as they return.
TEST_SUITE("recovery_core: recall") {
  TEST_CASE("an empty journal is the first start") {
    planner_story s(1, 1, {});
    CHECK(s.recalled == "");
    CHECK(s.comes("a").find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a sealed generation goes on in the tree; its members are waited for there") {
    planner_story s(2, 2, {proposed_record(4), sealed_record(4, {"a", "b"}, 1)});
    CHECK(s.recalled ==
          "begin WorldProposed g4: a(0,1) b(2,3), restart 1, which is sealed: Start g4, "
          "store a.lan:29400");
    CHECK(s.core.current_phase() == phase::running);
    CHECK(s.comes("b", {}, running_in(4)) == "");
    CHECK(s.comes("a", {}, running_in(4)) == "");
    CHECK(s.passes(1h) == "");
    s.starts("a");
    s.starts("b");
    CHECK(s.said == "all workers run (they were started already)");
  }

  TEST_CASE(
      "an actor that begins late hears which world runs, and of none that is only formed or ends") {
    planner_story s(2, 2, {proposed_record(4), sealed_record(4, {"a", "b"}, 1)});
    REQUIRE(s.core.running_world());
    CHECK(text(s.core.running_world()->any()) == "Sealed g4: a(0,1) b(2,3), restart 1");
    CHECK(s.core.running_world()->envelope().about == generation{4});
    s.fails("a");
    CHECK_FALSE(s.core.running_world());

    planner_story first(2, 2, {});
    CHECK_FALSE(first.core.running_world());
    first.comes("a");
    first.comes("b");
    REQUIRE(first.core.current_phase() == phase::forming);
    CHECK_FALSE(first.core.running_world());
    first.is_sealed();
    CHECK(first.core.running_world());
  }

  TEST_CASE("members that do not return in time are lost, and were so before any failure") {
    planner_story s(1, 3, {proposed_record(1), sealed_record(1, {"a", "b", "c"})});
    s.comes("b", {}, running_in(1));
    CHECK(s.core.next_wakeup() == dawn + 15s);
    CHECK(s.passes(15s) == "");
    CHECK(s.said == lines("node a is lost: it did not come back to the restarted master",
                          "node c is lost: it did not come back to the restarted master"));
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.ends("node a did not come back") == "");
    CHECK(s.passes(250ms) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: b(0,1)"));
  }

  TEST_CASE("workers that failed as a member was gone with the old master cost no restart") {
    planner_story s(1, 3, {proposed_record(1), sealed_record(1, {"a", "b"})});
    s.comes("b", {}, running_in(1));
    s.passes(1s);
    s.fails("b");
    s.passes(14s);
    s.said.clear();
    const auto next = s.ends("node a did not come back");
    CHECK(next == lines("record GenerationProposed g2", "begin WorldProposed g2: b(0,1)"));
  }

  TEST_CASE("a member that was back, and is away again, is not lost for having been awaited") {
    planner_story s(2, 2, {proposed_record(1), sealed_record(1, {"a", "b"})});
    s.comes("a", {}, running_in(1));
    s.comes("b", {}, running_in(1));
    s.goes_away("b");
    CHECK(s.passes(15s) == "");
    CHECK(s.core.current_phase() == recovery_core::phase::running);
  }

  TEST_CASE("the next generation has the next number, and every node the rank it had") {
    planner_story s(2, 2, {proposed_record(1), sealed_record(1, {"b", "a"})});
    s.comes("a", {}, running_in(1));
    s.comes("b", {}, running_in(1));
    CHECK(s.fails_and_ends("a").find("begin WorldProposed g2: b(0,1) a(2,3), restart 1") !=
          std::string::npos);
  }

  TEST_CASE("a proposed number is burnt, whether or not it was ever announced") {
    planner_story s(1, 1, {proposed_record(1), proposed_record(2)});
    CHECK(s.comes("a").find("record GenerationProposed g3") == 0);
  }

  TEST_CASE("a number that a node has heard of is burnt, even if the journal has forgotten it") {
    planner_story s(1, 1, {proposed_record(1)});
    CHECK(s.comes("a", {}, running_in(7)).find("record GenerationProposed g8") == 0);
  }

  TEST_CASE(
      "a master without its journal forms no smaller world while its nodes are on their way") {
    auto sizes = planner_story::sizes(1, 3);
    sizes.last_call.reset();
    planner_story s(sizes, planner_story::restarts(3), {});
    CHECK(s.comes("b", {}, running_in(7)) == "");
    CHECK(s.passes(14s) == "");
    CHECK(s.comes("c", {}, running_in(7)) == "");
    CHECK(s.passes(1s) ==
          lines("record GenerationProposed g8", "begin WorldProposed g8: b(0,1) c(2,3)"));
    // All that there can be are not waited for.
    planner_story all(1, 2, {});
    all.comes("a", {}, running_in(7));
    CHECK(all.comes("b", {}, running_in(7)).find("record GenerationProposed g8") == 0);
  }

  TEST_CASE("a node that another supervisor has taken over is lost, and there again, at no cost") {
    planner_story s(2, 2, {proposed_record(4), sealed_record(4, {"a", "b"})});
    CHECK(s.comes("b", {}, running_in(4)) == "");
    CHECK(s.comes_as("a", incarnation{9}) == "");
    CHECK(s.said.find("node a is lost: a newer node supervisor of this name is here") == 0);
    CHECK(s.core.current_phase() == phase::ending);
    CHECK(s.ends("node a is lost") ==
          lines("record GenerationProposed g5", "begin WorldProposed g5: a(0,1) b(2,3)"));
  }

  TEST_CASE("what was counted is told to the tree, and counts") {
    planner_story s(planner_story::sizes(1, 1), planner_story::restarts(2),
                    {proposed_record(1), sealed_record(1, {"a"}), counted_record(1, 2)});
    CHECK(s.recalled == "counted before: a 1");
    CHECK(s.core.current_phase() == phase::gathering);
    CHECK(s.comes("a", {}, failed_in(1)) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1), restart 2"));
    s.is_sealed();
    s.fails_and_ends("a");
    s.is_sealed();
    CHECK(s.fails_and_ends("a").find("verdict failure") != std::string::npos);
  }

  TEST_CASE("a planner that fell between two worlds waits for those it knows") {
    // With MIN 1 the first to return would otherwise be a world of its own, and the others
    // standbys.
    planner_story s(1, 4,
                    {proposed_record(1), sealed_record(1, {"a", "b", "c"}), counted_record(1, 1),
                     proposed_record(2)});
    CHECK(s.comes("c", {}, idle_after(2)) == "");
    CHECK(s.comes("a", {}, idle_after(2)) == "");
    CHECK(s.comes("b", {}, idle_after(2)) ==
          lines("record GenerationProposed g3",
                "begin WorldProposed g3: a(0,1) b(2,3) c(4,5), restart 1"));
  }

  TEST_CASE("but not longer than they may take to come back") {
    planner_story s(1, 4, {proposed_record(1), sealed_record(1, {"a", "b"}), counted_record(1, 1)});
    s.comes("b", {}, idle_after(1));
    CHECK(s.core.next_wakeup() == dawn + 15s);
    CHECK(s.passes(15s) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: b(0,1), restart 1"));
  }

  TEST_CASE("one that fell before the first world was sealed knows no node: a last call again") {
    planner_story s(1, 4, {proposed_record(1)});
    CHECK(s.comes("a", {}, ready_for(1, 4000)) == "");
    CHECK(s.comes("b", {}, ready_for(1)) == "");
    CHECK(s.passes(30s) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) b(2,3)"));
  }

  TEST_CASE("a job that has concluded stays so, and each node that comes is told") {
    planner_story s(1, 1, {proposed_record(1), sealed_record(1, {"a"}), concluded_record(true)});
    CHECK(s.recalled == "verdict success: as recorded");
    CHECK(s.core.current_phase() == phase::concluded);
    CHECK(s.comes("a", {}, running_in(1)) == "to a: Conclude success: as recorded");
    // The end is announced when all have had the time to come and hear it.
    CHECK(s.core.next_wakeup() == dawn + limits::return_to_sleeper_within);
    CHECK(s.passes(limits::return_to_sleeper_within) == "announce the end");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("a proposal that crossed the verdict does not open the job again") {
    planner_story s(1, 1, {sealed_record(1, {"a"}), concluded_record(false), proposed_record(2)});
    CHECK(s.core.current_phase() == phase::concluded);
    CHECK(s.comes("a") == "to a: Conclude failure: as recorded");
  }
}
