#include "tests/actors/agent_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = agent_core::phase;

namespace {

agent_story that_runs(std::optional<duration> leave_within = std::nullopt) {
  agent_options o{"a", 2, 30s};
  o.leave_within = leave_within;
  agent_story s(o);
  s.runs(1);
  return s;
}

} // namespace

/// Workers save and end by themselves, where their end is a plan.
TEST_SUITE("agent_core: workers are asked to end") {
  TEST_CASE("one of them is signalled, alone; all end with 0, and that is said with the rest") {
    auto s = that_runs();
    CHECK(s.is_asked_to_end(1) == "look for handler of 0: signal 10");
    CHECK(s.finds_handler(0, true) == "pass on 0: signal 10 alone");
    CHECK(s.ends(1, 1, exited(0)) == "report EndAnswer g1 a: begun");
    CHECK(s.ends(1, 0, exited(0)) == "report Finished g1 a, asked to");
    CHECK(s.state() == "NodeState finished g1");
    CHECK(s.core.state(s.now).read()->getAsked());
  }

  TEST_CASE("a save that begins is told once") {
    auto s = that_runs();
    s.is_asked_to_end(1);
    CHECK(s.wants_snapshot() == "");
    s.finds_handler(0, true);
    CHECK(s.wants_snapshot() == "report EndAnswer g1 a: begun");
    CHECK(s.wants_snapshot() == "");
    CHECK(s.ends(1, 0, exited(0)) == "");
  }

  TEST_CASE("saves of a generation that was not asked are nothing special") {
    auto s = that_runs();
    CHECK(s.wants_snapshot() == "");
    s.ends(1, 0, exited(0));
    CHECK(s.ends(1, 1, exited(0)) == "report Finished g1 a");
  }

  TEST_CASE("a worker without a handler would die of it: it is not signalled, and that is said") {
    auto s = that_runs();
    s.is_asked_to_end(1);
    CHECK(s.finds_handler(0, false) == "report EndAnswer g1 a: not possible");
    // Asked again on a new link: it may have one by now.
    CHECK(s.is_asked_to_end(1) == "look for handler of 0: signal 10");
    CHECK(s.finds_handler(0, true) == "pass on 0: signal 10 alone");
  }

  TEST_CASE("workers that are being started cannot be asked") {
    agent_story s;
    s.prepares(1);
    s.finds_port(4000);
    s.starts(1);
    s.comes_up(1, 0);
    CHECK(s.is_asked_to_end(1) == "report EndAnswer g1 a: not possible");
  }

  TEST_CASE("the first of those that are left is signalled, once for each generation") {
    auto s = that_runs();
    s.ends(1, 0, exited(0));
    CHECK(s.is_asked_to_end(1) == "look for handler of 1: signal 10");
    CHECK(s.is_asked_to_end(1) == "");
    s.finds_handler(1, true);
    CHECK(s.is_asked_to_end(1) == "");
  }

  TEST_CASE("a word about another generation, or to one that has ended or fails, means nothing") {
    auto s = that_runs();
    CHECK(s.is_asked_to_end(2) == "");
    s.is_asked_to_end(1);
    s.ends(1, 0, exited(1));
    CHECK(s.finds_handler(0, true) == "");
    CHECK(s.is_asked_to_end(1) == "");

    auto done = that_runs();
    done.ends(1, 0, exited(0));
    done.ends(1, 1, exited(0));
    CHECK(done.is_asked_to_end(1) == "");
    CHECK_FALSE(done.core.state(done.now).read()->getAsked());
  }

  TEST_CASE("a worker that fails instead is a failure, and the next generation is not asked") {
    auto s = that_runs();
    s.is_asked_to_end(1);
    s.finds_handler(0, true);
    CHECK(s.ends(1, 0, exited(3)) ==
          lines("report EndAnswer g1 a: begun", "report Failed g1 a [a/0: exit code 3]"));
  }
}

TEST_SUITE("agent_core: a node leaves, and its workers may save first") {
  TEST_CASE("the user's signal waits until they have ended, and then for their saves") {
    auto s = that_runs(60s);
    s.saves_at_once = false;
    CHECK(s.is_interrupted(SIGTERM) == "look for handler of 0: signal 10");
    CHECK(s.finds_handler(0, true) == "pass on 0: signal 10 alone");
    CHECK(s.ends(1, 0, exited(0)) == "");
    CHECK(s.ends(1, 1, exited(0)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "drain g1"));
    CHECK(s.is_drained(1).find("report Finished g1 a, asked to\nreport Goodbye") == 0);
  }

  TEST_CASE("one that has not ended well makes it a loss, for which the others are stopped") {
    auto s = that_runs(60s);
    s.is_interrupted(SIGTERM);
    s.finds_handler(0, true);
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(3));
    const auto end = s.is_swept();
    CHECK(end.find("report Goodbye") != std::string::npos);
    CHECK(end.find("Finished") == std::string::npos);
  }

  TEST_CASE("they have the signal when that takes too long") {
    auto s = that_runs(60s);
    s.is_interrupted(SIGTERM);
    s.finds_handler(0, true);
    CHECK(s.passes(59'999ms) == "");
    CHECK(s.passes(1ms) == "stop g1: signal 15 within 30.0 s");
    CHECK(s.passes(60s) == "");
  }

  TEST_CASE("or at once if they take no such signal") {
    auto s = that_runs(60s);
    s.is_interrupted(SIGTERM);
    CHECK(s.finds_handler(0, false) == "stop g1: signal 15 within 30.0 s");
  }

  TEST_CASE("or when the master has the generation stopped, since a peer is gone") {
    auto s = that_runs(60s);
    s.is_interrupted(SIGTERM);
    s.finds_handler(0, true);
    CHECK(s.stops(1) == "stop g1: signal 15 within 30.0 s");
    CHECK(s.stops(1) == "");

    auto judged = that_runs(60s);
    judged.is_interrupted(SIGTERM);
    CHECK(judged.concludes(false) == "stop g1: signal 15 within 30.0 s");
    CHECK(judged.finds_handler(0, true) == "");
  }

  TEST_CASE("a second signal kills them") {
    auto s = that_runs(60s);
    s.is_interrupted(SIGTERM);
    s.finds_handler(0, true);
    CHECK(s.is_interrupted(SIGTERM) == "stop g1: signal 9 within 5.0 s");
    CHECK(s.passes(120s) == "");
  }

  TEST_CASE("Ctrl-C does not wait, nor does a node whose workers are being started") {
    CHECK(that_runs(60s).is_interrupted(SIGINT) == "stop g1: signal 2 within 30.0 s");
    agent_options o{"a", 2, 30s};
    o.leave_within = 60s;
    agent_story s(o);
    s.prepares(1);
    s.finds_port(4000);
    s.starts(1);
    CHECK(s.is_interrupted(SIGTERM) == "stop g1: signal 15 within 30.0 s");
  }
}
