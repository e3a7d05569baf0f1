#include "tests/actors/rendezvous_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = rendezvous_core::phase;

/// What a rendezvous that starts anew makes of the journal, and of the nodes as they return.
TEST_SUITE("rendezvous_core: recall") {
  TEST_CASE("an empty journal is the first start") {
    rendezvous_story s(1, 1, {});
    CHECK(s.comes("a").find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a sealed generation runs on; members that return are nobody's failure") {
    rendezvous_story s(2, 2, {proposed_record(4), sealed_record(4, {"a", "b"})});
    CHECK(s.core.in_words() == "generation 4 runs on 2 nodes");
    CHECK(s.comes("b", {}, running_in(4)) == "inform recovery: NodePresent b running g4");
    CHECK(s.comes("a", {}, running_in(4)) == "inform recovery: NodePresent a running g4");
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a member whose Start got lost with the old master is started by the new one") {
    rendezvous_story s(2, 2, {proposed_record(1), sealed_record(1, {"a", "b"})});
    CHECK(s.comes("b", {}, ready_for(1)) ==
          lines("to b: Start g1, store a.lan:29400", "inform recovery: NodePresent b ready g1"));
  }

  TEST_CASE("members that do not return in time are lost") {
    rendezvous_story s(1, 3, {proposed_record(1), sealed_record(1, {"a", "b", "c"})});
    s.comes("b", {}, running_in(1));
    CHECK(s.core.next_wakeup() == dawn + 15s);
    CHECK(s.passes(15s) ==
          lines("inform recovery: NodeLost a: it did not come back to the restarted master",
                "inform recovery: NodeLost c: it did not come back to the restarted master"));
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("the next generation has the next number, and everyone the rank it had") {
    rendezvous_story s(2, 2, {proposed_record(1), sealed_record(1, {"b", "a"})});
    s.comes("a", {}, running_in(1));
    s.comes("b", {}, running_in(1));
    CHECK(s.reforms(1, 1) == lines("to b,a: Stop g1: once more", "record GenerationProposed g2",
                                   "to b,a: Prepare g2: b(0,1) a(2,3), restart 1"));
  }

  TEST_CASE("a proposed number is burnt, whether or not it was ever announced") {
    rendezvous_story s(1, 1, {proposed_record(1), proposed_record(2)});
    s.comes("a");
    CHECK(s.last.find("record GenerationProposed g3") == 0);
  }

  TEST_CASE("a number that a node has heard of is burnt, even if the journal has forgotten it") {
    rendezvous_story s(1, 1, {proposed_record(1)});
    s.comes("a", {}, running_in(7));
    CHECK(s.last.find("record GenerationProposed g8") == 0);
  }

  TEST_CASE("a restart that was charged before the master fell is counted in the next world") {
    rendezvous_story s(1, 1, {proposed_record(1), sealed_record(1, {"a"}), charged_record(1, 2)});
    CHECK(s.core.current_phase() == phase::gathering);
    CHECK(s.comes("a", {}, failed_in(1)) ==
          lines("record GenerationProposed g2", "to a: Prepare g2: a(0,1), restart 2"));
  }

  TEST_CASE("records read twice change nothing") {
    const std::vector<messages::any_msg> past = {proposed_record(1), sealed_record(1, {"a"}),
                                                 charged_record(1, 1)};
    auto twice = past;
    twice.insert(twice.end(), past.begin(), past.end());
    rendezvous_story once(1, 1, past), again(1, 1, twice);
    CHECK(once.comes("a") == again.comes("a"));
  }

  TEST_CASE("a master that fell between two worlds waits for those it knows before it forms one") {
    // With MIN 1 the first to return would otherwise be a world of its own, and the others spares.
    rendezvous_story s(1, 4,
                       {proposed_record(1), sealed_record(1, {"a", "b", "c"}), charged_record(1, 1),
                        proposed_record(2)});
    CHECK(s.comes("c", {}, idle_after(2)) == "");
    CHECK(s.comes("a", {}, idle_after(2)) == "");
    CHECK(s.comes("b", {}, idle_after(2)) ==
          lines("record GenerationProposed g3",
                "to a,b,c: Prepare g3: a(0,1) b(2,3) c(4,5), restart 1"));
  }

  TEST_CASE("but not longer than they may take to come back") {
    rendezvous_story s(1, 4,
                       {proposed_record(1), sealed_record(1, {"a", "b"}), charged_record(1, 1)});
    s.comes("b", {}, idle_after(1));
    CHECK(s.core.next_wakeup() == dawn + 15s);
    CHECK(s.passes(15s) ==
          lines("record GenerationProposed g2", "to b: Prepare g2: b(0,1), restart 1"));
  }

  TEST_CASE(
      "a master that fell before the first world was sealed knows nobody: a last call again") {
    rendezvous_story s(1, 4, {proposed_record(1)});
    CHECK(s.comes("a", {}, ready_for(1, 4000)) == "");
    CHECK(s.comes("b", {}, ready_for(1)) == "");
    CHECK(s.passes(30s) ==
          lines("record GenerationProposed g2", "to a,b: Prepare g2: a(0,1) b(2,3)"));
  }

  TEST_CASE("a job that has concluded stays so, and whoever comes is told") {
    rendezvous_story s(1, 1, {proposed_record(1), sealed_record(1, {"a"}), concluded_record(true)});
    CHECK(s.core.current_phase() == phase::concluded);
    CHECK(s.comes("a", {}, running_in(1)) == "to a: Conclude success: as recorded");
    // The end is announced when all have had the time to come and hear it.
    CHECK(s.core.next_wakeup() == dawn + 15s);
    CHECK(s.passes(15s) == "announce the end");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("a proposal that crossed the verdict does not open the job again") {
    rendezvous_story s(1, 1,
                       {sealed_record(1, {"a"}), concluded_record(false), proposed_record(2)});
    CHECK(s.core.current_phase() == phase::concluded);
    CHECK(s.comes("a") == "to a: Conclude failure: as recorded");
  }

  TEST_CASE("recovery that starts anew hears again of members that were lost before") {
    rendezvous_story s(1, 2, {proposed_record(1), sealed_record(1, {"a", "b"})});
    s.comes("a", {}, running_in(1));
    s.comes("b", {}, running_in(1));
    s.is_lost("b");
    // Nothing asks for the next generation: recovery fell over the news. Its fall ends all links.
    s.goes_away("a");
    CHECK(s.comes("a", {}, running_in(1)) == lines("inform recovery: NodePresent a running g1",
                                                   "inform recovery: NodeLost b: it was lost"));
    s.reforms(1, 0);
    s.gets_ready("a", 2, 4000);
    s.goes_away("a");
    CHECK(s.comes("a", {}, running_in(2)) == "inform recovery: NodePresent a running g2");
  }
}
