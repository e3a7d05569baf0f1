#include "tests/actors/agent_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = agent_core::phase;
using messages::msg;
using messages::Underway;

namespace {

/// What was to be remembered, and where among the effects; at the end if it was not.
struct memory {
  explicit memory(const agent_core::effects& effects) : place(effects.size()) {
    for (std::size_t i = 0; i < effects.size(); ++i)
      if (const auto* e = std::get_if<agent_core::remember>(&effects[i])) {
        place = i;
        what = e->what;
      }
  }
  std::size_t place;
  msg<Underway> what;
};

template<class Effect>
std::size_t first(const agent_core::effects& effects) {
  for (std::size_t i = 0; i < effects.size(); ++i)
    if (std::holds_alternative<Effect>(effects[i]))
      return i;
  return effects.size();
}

/// What an agent that runs generation 3 leaves to its successor.
msg<Underway> left_by(const node_name& node = "a") {
  agent_story s(node);
  s.prepares(3);
  s.finds_port(4000);
  return memory(s.core.start(s.now, start(3))).what;
}

const std::vector<ports::survivor> both = {{51, 111, 1}, {50, 110, 0}};

struct successor : agent_story {
  explicit successor(const std::vector<ports::survivor>& survivors, const node_name& node = "a")
      : agent_story(node), adopted(told(core.adopt(now, left_by(node), survivors))) {}
  std::string adopted;
};

} // namespace

TEST_SUITE("agent_core: what a successor finds") {
  TEST_CASE("the generation is remembered before the first worker is started") {
    agent_story s;
    s.prepares(3);
    s.finds_port(4000);
    const auto effects = s.core.start(s.now, start(3));
    const memory kept(effects);
    CHECK(kept.place < first<agent_core::start_generation>(effects));
    CHECK(kept.what.envelope().about == generation{3});
    CHECK(kept.what.read()->getSeat().getNodes() == 2);
  }

  TEST_CASE("it is forgotten before the first worker is ended, whyever that is, and once") {
    agent_story s;
    s.runs(3);
    agent_core::effects effects;
    SUBCASE("a new generation") {
      effects = s.core.prepare(s.now, prepare(4, {"a", "b"}));
    }
    SUBCASE("stopped") {
      effects = s.core.stop(s.now, stop(3));
    }
    SUBCASE("a failure") {
      effects = s.core.worker_ended(s.now, worker_ended(3, 0, {exited(1), {}, {}}));
    }
    SUBCASE("the user") {
      effects = s.core.interrupted(s.now, SIGINT, false);
    }
    const memory kept(effects);
    CHECK(kept.place < first<agent_core::stop_generation>(effects));
    CHECK(kept.what.envelope().about == generation{});
    const auto later = s.core.worker_ended(s.now, worker_ended(3, 1, {killed_by(SIGTERM), {}, 0s}));
    CHECK(memory(later).place == later.size());
  }

  TEST_CASE("workers that have finished are still what a successor must know of") {
    agent_story s;
    s.runs(3);
    s.ends(3, 0, exited(0));
    const auto effects = s.end_of(3, 1, exited(0), {}, false);
    CHECK(memory(effects).place == effects.size());
    const auto saved = s.core.drained(s.now, generation{3}, std::nullopt);
    CHECK(s.core.current_phase() == phase::finished);
    CHECK(memory(saved).place == saved.size());
  }
}

TEST_SUITE("agent_core: adoption") {
  TEST_CASE("the workers go on, each at its place, and the store with them") {
    successor s(both);
    CHECK(s.adopted == lines("adopt_store at 29400", "adopt 0 (pid 110)", "adopt 1 (pid 111)"));
    CHECK(s.state() == "NodeState running g3");
    CHECK(s.comes_up(3, 0) == "");
    CHECK(s.starts(3) == "");
    CHECK(s.prepares(3) == "");
  }

  TEST_CASE("where another node has the store, there is none to adopt") {
    successor s(both, "b");
    CHECK(s.adopted == lines("adopt 0 (pid 110)", "adopt 1 (pid 111)"));
  }

  TEST_CASE("an adopted worker's failure is one like any other") {
    successor s(both);
    CHECK(s.ends(3, 1, exited(5)) == "report Failed g3 a [a/1: exit code 5]");
    CHECK(s.state().find("failed g3") != std::string::npos);
  }

  TEST_CASE("ends that came while there was no supervisor make the generation finished") {
    successor s(both);
    s.ends(3, 0, exited(0));
    CHECK(s.ends(3, 1, exited(0)) == "report Finished g3 a");
  }

  TEST_CASE(
      "a worker that was not there yet is started, one that the agent does not know is ended") {
    successor s({{50, 110, 0}});
    CHECK(s.adopted.find(
              lines("adopt_store at 29400", "sweep", "adopt 0 (pid 110)", "start 1: g3")) == 0);
    CHECK(s.is_swept(1) == "");
    CHECK(s.comes_up(3, 1) == "report Running g3 a");
    s.stops(3);
    s.ends(3, 0, killed_by(SIGTERM));
    CHECK(s.ends(3, 1, killed_by(SIGTERM)) == "sweep");
  }

  TEST_CASE("a sweep that was begun while workers ran says nothing of what they leave behind") {
    successor s({{50, 110, 0}});
    CHECK(s.comes_up(3, 1) == "report Running g3 a");
    s.stops(3);
    s.ends(3, 0, killed_by(SIGTERM));
    CHECK(s.ends(3, 1, killed_by(SIGTERM)) == "");
    CHECK(s.is_swept(1) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g3 a"));
  }

  TEST_CASE("the next generation is formed as ever") {
    successor s(both);
    s.prepares(4);
    s.ends(3, 0, killed_by(SIGTERM));
    CHECK(s.ends(3, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g3 a", "open_store"));
    CHECK(s.finds_port(4001) == "report Prepared g4 a port 4001");
  }

  TEST_CASE("what was forgotten is not adopted") {
    agent_story s;
    messages::author author("a/agent");
    CHECK(text(s.core.adopt(s.now, author.write<Underway>({}, [](auto) {}), {})) == "");
    CHECK(s.state() == "NodeState idle g0");
  }
}
