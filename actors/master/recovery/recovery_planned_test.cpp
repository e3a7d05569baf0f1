#include "tests/actors/planner_story.hpp"

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

constexpr auto asked = "to a,b: EndWanted g1: 1 more node is here";
constexpr auto stopped_for = "stop g1: 1 more node is here";
const auto next_begins =
    lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) b(2,3) c(4,5)");

rendezvous_options that_asks() {
  auto o = planner_story::sizes(2, 4);
  o.planned_end = planned_end_options{30s, 60s};
  return o;
}

/// A third node has come to two that run, and these were asked to end.
planner_story asked_to_end() {
  auto s = planner_story::that_runs({"a", "b"}, that_asks());
  s.comes("c");
  REQUIRE(s.passes(100ms) == asked);
  return s;
}

} // namespace

TEST_SUITE("recovery_core: workers are asked to end before a planned change") {
  TEST_CASE("all have saved and exited with 0: no success, but the next world") {
    auto s = asked_to_end();
    CHECK(
        s.said.find("1 more node is here; the workers are asked to save and end, within 60.0 s") !=
        std::string::npos);
    CHECK(s.core.next_wakeup() == s.now + 30s);
    CHECK(s.answers("a", true) == "");
    CHECK(s.core.next_wakeup() == s.now + 60s);
    CHECK(s.finishes("a", true) == "");
    CHECK(s.finishes("b") == "");
    CHECK(s.ends() == next_begins);
    CHECK(s.said.find("not counted against") != std::string::npos);
  }

  TEST_CASE("without the option they are stopped at once") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 4));
    s.comes("c");
    CHECK(s.passes(100ms) == stopped_for);
  }

  TEST_CASE("nothing begins: they are stopped after a while, and nothing is counted") {
    auto s = asked_to_end();
    CHECK(s.passes(29'999ms) == "");
    CHECK(s.passes(1ms) == stopped_for);
    CHECK(s.said.find("--graceful-save-within") != std::string::npos);
    CHECK(s.core.next_wakeup() == std::nullopt);
    s.stops("a");
    s.stops("b");
    CHECK(s.ends() == next_begins);
  }

  TEST_CASE("what has begun has its whole time, once") {
    auto s = asked_to_end();
    s.passes(29s);
    s.answers("b", true);
    CHECK(s.passes(30'999ms) == "");
    s.answers("a", true);
    CHECK(s.passes(1ms) == stopped_for);
    CHECK(s.said.find("--graceful-within") != std::string::npos);
  }

  TEST_CASE("workers that take no such signal are stopped at once") {
    auto s = asked_to_end();
    CHECK(s.answers("b", false) == stopped_for);
    CHECK(s.answers("a", false) == "");
  }

  TEST_CASE("a node that dies meanwhile ends the waiting, and is the cause") {
    auto s = asked_to_end();
    s.is_lost("b");
    CHECK(s.core.current_phase() == phase::ending);
    CHECK(s.passes(60s) == "");
    CHECK(s.answers("a", true) == "");
    CHECK(s.ends("node b is lost") ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) c(2,3)"));
  }

  TEST_CASE("a worker that fails meanwhile is a failure like any other") {
    auto s = asked_to_end();
    s.fails("a");
    CHECK(s.core.current_phase() == phase::ending);
    CHECK(s.ends("it failed").find("record RestartCounted") == 0);
  }

  TEST_CASE("a second plan does not ask again, and its node is taken in with the first") {
    auto s = asked_to_end();
    CHECK(s.comes("d") == "");
    CHECK(s.passes(1s) == "");
    s.finishes("a", true);
    s.finishes("b", true);
    CHECK(s.ends().find("begin WorldProposed g2: a(0,1) b(2,3) c(4,5) d(6,7)") !=
          std::string::npos);
  }

  TEST_CASE("a member with a new link hears it again") {
    auto s = asked_to_end();
    s.goes_away("b");
    CHECK(s.comes("b", {}, running_in(1)) == "to b: EndWanted g1: 1 more node is here");
  }

  TEST_CASE("nodes whose newcomer is lost again are not kept from their next world") {
    auto s = asked_to_end();
    s.is_lost("c");
    s.finishes("a", true);
    s.finishes("b", true);
    CHECK(s.ends().find("begin WorldProposed g2: a(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("a later master knows of no plan, and a node that was asked says so") {
    auto s = planner_story::that_runs({"a", "b"}, that_asks());
    s.finishes("a");
    s.finishes("b", true);
    CHECK(s.ends().find("record GenerationProposed g2") == 0);
    auto first = planner_story::that_runs({"a", "b"}, that_asks());
    CHECK(first.finishes("b", true) ==
          "to a,b: EndWanted g1: the workers of node b have saved and ended");
    auto done = planner_story::that_runs({"a", "b"}, that_asks());
    done.finishes("a");
    done.finishes("b");
    CHECK(done.ends().find("record Concluded") == 0);
  }

  TEST_CASE("a node that leaves has finished, and the others have their time to end") {
    auto o = that_asks();
    o.nodes_min = 1;
    auto s = planner_story::that_runs({"a", "b"}, o);
    s.finishes("b", true);
    CHECK(s.is_lost("b") == "");
    CHECK(s.core.current_phase() == phase::running);
    CHECK(s.core.next_wakeup() == s.now + 30s);
    s.finishes("a", true);
    CHECK(s.ends() == lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1)"));
  }

  TEST_CASE("they are stopped at once where the master was not told to ask") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(1, 2));
    CHECK(s.finishes("b", true) == "stop g1: the workers of node b have saved and ended");
  }

  TEST_CASE("an answer that nothing was asked for, or of another generation, means nothing") {
    auto s = planner_story::that_runs({"a", "b"}, that_asks());
    CHECK(s.answers("a", false) == "");
    CHECK(s.core.current_phase() == phase::running);
  }
}
