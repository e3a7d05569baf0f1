#include "tests/actors/planner_story.hpp"

#include <fmt/format.h>

#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

rendezvous_options plain(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  auto o = planner_story::sizes(nodes_min, nodes_max);
  o.last_call.reset();
  o.settle = 500ms;
  o.settle_most = 5s;
  o.growth.quiet = 100ms;
  o.growth.most = 1s;
  return o;
}

rendezvous_options in_units(std::uint32_t nodes_min, std::uint32_t nodes_max, std::uint32_t unit) {
  auto o = plain(nodes_min, nodes_max);
  o.unit = unit;
  return o;
}

planner_story unformed(const rendezvous_options& o) {
  return {o, planner_story::restarts(9)};
}

/// These nodes are a running world, in generation 1.
planner_story that_runs(const rendezvous_options& o, const std::vector<node_name>& nodes) {
  return planner_story::that_runs(nodes, o, planner_story::restarts(9));
}

} // namespace

TEST_SUITE("recovery_core: how long the first world waits") {
  TEST_CASE("a lone node starts when no other has come for a moment") {
    auto s = unformed(plain(1, 2));
    CHECK(s.comes("a") == "");
    CHECK(s.core.next_wakeup() == dawn + 500ms);
    CHECK(s.passes(499ms) == "");
    CHECK(s.passes(1ms) == lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1)"));
  }

  TEST_CASE("a node that comes within that moment is waited for again, and MAX starts at once") {
    auto s = unformed(plain(1, 3));
    s.comes("a");
    s.passes(400ms);
    CHECK(s.comes("b") == "");
    CHECK(s.passes(499ms) == "");
    CHECK(s.comes("c").find("begin WorldProposed g1: a(0,1) b(2,3) c(4,5)") != std::string::npos);
  }

  TEST_CASE("nodes that keep coming do not hold it up for ever") {
    auto s = unformed(plain(1, 99));
    for (int i = 0; i < 12; ++i) {
      CHECK(s.comes(fmt::format("n{:02}", i)) == "");
      CHECK(s.passes(400ms) == "");
    }
    s.comes("last");
    CHECK(s.core.next_wakeup() == dawn + 5s);
    CHECK(s.passes(200ms).find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a node that goes away for a moment is no newcomer when it is back") {
    auto s = unformed(plain(1, 3));
    s.comes("a");
    s.comes("b");
    s.passes(400ms);
    s.goes_away("b");
    s.comes("b");
    CHECK(s.passes(100ms).find("begin WorldProposed g1: a(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("what is said until then") {
    auto s = unformed(plain(1, 2));
    s.comes("a");
    CHECK(s.said ==
          lines("node a joined (1 of 2)",
                "1 of at most 2 nodes are here, which is enough: starting when no node has come "
                "for 500 ms, within 5.0 s"));
  }
}

TEST_SUITE("recovery_core: a running world grows") {
  TEST_CASE("a newcomer stops the generation a moment later, and takes part in the next") {
    auto s = that_runs(plain(1, 3), {"a"});
    s.passes(1h);
    CHECK(s.comes("b") == "");
    CHECK(s.said == "node b joined while generation 1 is running; the next one may include it");
    CHECK(s.core.next_wakeup() == s.now + 100ms);
    CHECK(s.passes(100ms) == "stop g1: 1 more node is here");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.ends() ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) b(2,3)"));
    CHECK(s.said ==
          "1 more node is here; restarting the workers (not counted against --max-restarts)");
  }

  TEST_CASE("several that come together are one interruption") {
    auto s = that_runs(plain(1, 9), {"a"});
    s.passes(1h);
    for (const char* node : {"b", "c", "d"}) {
      CHECK(s.comes(node) == "");
      CHECK(s.passes(50ms) == "");
    }
    CHECK(s.passes(50ms) == "stop g1: 3 more nodes are here");
  }

  TEST_CASE("one that comes while the world is being formed is taken right after") {
    auto s = unformed(plain(1, 3));
    s.comes("a");
    s.passes(500ms);
    CHECK(s.comes("b") == "");
    CHECK(s.core.current_phase() == phase::forming);
    s.passes(50ms);
    s.is_sealed();
    CHECK(s.core.next_wakeup() == s.now + 50ms);
    CHECK(s.passes(50ms) == "stop g1: 1 more node is here");
  }

  TEST_CASE("no world grows while a member is away: first it is known whether it is lost") {
    auto s = that_runs(plain(1, 3), {"a", "b"});
    s.goes_away("b");
    s.comes("c");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1s) == "");
    s.comes("b", {}, running_in(1));
    CHECK(s.passes(100ms) == "stop g1: 1 more node is here");
  }

  TEST_CASE("nor when part of the work is done") {
    auto s = that_runs(plain(1, 3), {"a", "b"});
    s.finishes("a");
    s.comes("c");
    CHECK(s.passes(100ms) == "");
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("nodes that come and go interrupt ever more rarely") {
    auto s = that_runs(plain(1, 2), {"a"});
    std::vector<duration> waits;
    while (waits.size() < 6) {
      s.comes("b");
      waits.push_back(*s.core.next_wakeup() - s.now);
      s.passes(waits.back());
      s.ends();
      s.is_sealed();
      s.is_lost_and_ends("b");
      s.is_sealed();
    }
    CHECK(waits == std::vector<duration>{100ms, 100ms, 400ms, 1600ms, 6400ms, 25'600ms});
  }
}

TEST_SUITE("recovery_core: standbys") {
  const auto* const told = "to c: StandBy: generation 1 has 2 nodes, the most there can be "
                           "(--nnodes)";

  TEST_CASE("a node beyond MAX is told to stand by at once, once for each link of its") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    CHECK(s.comes("c") == told);
    CHECK(s.comes("d").find("to d: StandBy") == 0);
    CHECK(s.passes(1h) == "");
    s.goes_away("c");
    CHECK(s.comes("c") == told);
    // A member's new link is no news to it.
    s.goes_away("a");
    CHECK(s.comes("a", {}, running_in(1)) == "");
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a node whose generation ended while it was away ends what it still runs") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    s.comes("c");
    s.is_lost_and_ends("b");
    const auto* const stop = "to b: Stop g1: generation 1 ended while the node was away";
    SUBCASE("it comes back while the next one is formed") {
      CHECK(s.comes("b", {}, running_in(1)).find(stop) == 0);
    }
    SUBCASE("it comes back beside the next one") {
      s.is_sealed();
      CHECK(
          s.comes("b", {}, running_in(1)) ==
          lines(stop, "to b: StandBy: generation 2 has 2 nodes, the most there can be (--nnodes)"));
      s.goes_away("b");
      CHECK(s.comes("b", {}, idle_after(1)).find("Stop") == std::string::npos);
    }
  }

  TEST_CASE("whatever the members do meanwhile") {
    SUBCASE("one is away") {
      auto s = that_runs(plain(1, 2), {"a", "b"});
      s.goes_away("b");
      CHECK(s.comes("c") == told);
    }
    SUBCASE("they are being told to get ready") {
      auto s = unformed(plain(2, 2));
      s.comes("a");
      s.comes("b");
      CHECK(s.comes("c") == told);
      CHECK(s.is_sealed() == "");
      CHECK(s.passes(1h) == "");
    }
    SUBCASE("generations end one after the other") {
      auto s = that_runs(plain(2, 2), {"a", "b"});
      for (int i = 0; i < 5; ++i) {
        s.fails_and_ends("a");
        s.is_sealed();
      }
      CHECK(s.comes("c").find("to c: StandBy: generation 6") == 0);
    }
    SUBCASE("they have not yet come back to a master that was restarted") {
      planner_story s(2, 2, {proposed_record(1), sealed_record(1, {"a", "b"})});
      CHECK(s.comes("c") == told);
    }
  }

  TEST_CASE("it takes the ranks of the node that is lost, at once") {
    auto s = that_runs(plain(3, 3), {"a", "b", "c"});
    s.comes("standby");
    s.passes(1h);
    CHECK(s.is_lost_and_ends("b") == lines("record GenerationProposed g2",
                                           "begin WorldProposed g2: a(0,1) standby(2,3) c(4,5)"));
  }

  TEST_CASE("a standby that is away holds no world up") {
    auto s = that_runs(plain(1, 2), {"a", "b"});
    s.comes("standby");
    s.goes_away("standby");
    CHECK(s.is_lost_and_ends("b").find("begin WorldProposed g2: a(0,1)") != std::string::npos);
  }

  TEST_CASE("members come before standbys, however early the standbys were here") {
    auto s = unformed(plain(1, 2));
    s.comes("standby");
    s.comes("a");
    s.is_lost_and_ends("standby");
    s.is_sealed();
    s.comes("standby");
    s.comes("late");
    CHECK(s.passes(100ms) == "stop g2: 1 more node is here");
    CHECK(s.ends().find("begin WorldProposed g3: a(0,1) standby(2,3)") != std::string::npos);
  }
}

TEST_SUITE("recovery_core: ranks from world to world") {
  TEST_CASE("a smaller world closes up, and a node that comes later comes last") {
    auto s = that_runs(plain(1, 3), {"a", "b", "c"});
    s.passes(1h);
    CHECK(s.is_lost_and_ends("a").find("begin WorldProposed g2: b(0,1) c(2,3)") !=
          std::string::npos);
    s.is_sealed();
    s.passes(1h);
    s.comes("a");
    s.passes(100ms);
    CHECK(s.ends().find("begin WorldProposed g3: b(0,1) c(2,3) a(4,5)") != std::string::npos);
  }

  TEST_CASE("a proposal that came to nothing moves no node") {
    auto s = that_runs(plain(2, 3), {"a", "b", "c"});
    CHECK(s.is_lost_and_ends("b").find("begin WorldProposed g2: a(0,1) c(2,3)") !=
          std::string::npos);
    s.comes("d");
    s.passes(1h);
    CHECK(s.is_lost_and_ends("a").find("begin WorldProposed g3: d(0,1) c(2,3)") !=
          std::string::npos);
  }
}

TEST_SUITE("recovery_core: after the first world") {
  TEST_CASE("below MIN the next generation waits for a replacement, which takes the free ranks") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    CHECK(s.is_lost_and_ends("a") == "");
    CHECK(s.core.current_phase() == phase::gathering);
    CHECK(s.comes("c") == lines("record GenerationProposed g2, 1 relaunched",
                                "begin WorldProposed g2: c(0,1) b(2,3)"));
  }

  TEST_CASE("no replacement until the join timeout: the job cannot go on") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    s.is_lost_and_ends("a");
    CHECK(s.passes(600s).find("verdict failure: only 1 of at least 2 nodes joined within 10 min") !=
          std::string::npos);
  }

  TEST_CASE("no node is waited for that was never seen") {
    auto s = that_runs(plain(1, 4), {"a", "b"});
    CHECK(s.fails_and_ends("a").find("begin WorldProposed g2: a(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("but for a member that is away the next generation waits, until it is back or lost") {
    for (const bool returns : {true, false}) {
      CAPTURE(returns);
      planner_story s(1, 2, {proposed_record(1), sealed_record(1, {"a", "b"})});
      s.comes("a", {}, running_in(1));
      s.fails("a");
      CHECK(s.ends("it failed").find("record RestartCounted g1 to a") == 0);
      CHECK(s.core.current_phase() == phase::gathering);
      s.passes(2s);
      if (returns)
        CHECK(s.comes("b", {}, draining(1))
                  .find("begin WorldProposed g2: a(0,1) b(2,3), restart 1") != std::string::npos);
      else
        CHECK(s.is_lost("b").find("begin WorldProposed g2: a(0,1), restart 1") !=
              std::string::npos);
    }
  }
}

TEST_SUITE("recovery_core: units") {
  TEST_CASE("a world has whole units; a node that is left over stands by") {
    auto s = unformed(in_units(2, 6, 2));
    for (const char* node : {"a", "b", "c"})
      s.comes(node);
    CHECK(s.passes(500ms) ==
          lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1) b(2,3)",
                "to c: StandBy: generation 1 has 2 nodes of the 3 that are here, a whole number of "
                "units (--node_unit)"));
  }

  TEST_CASE("one newcomer is not enough, the second makes a unit") {
    auto s = that_runs(in_units(2, 6, 2), {"a", "b"});
    s.comes("c");
    CHECK(s.passes(100ms).find("to c: StandBy") == 0);
    s.comes("d");
    CHECK(s.passes(100ms) == "stop g1: 2 more nodes are here");
  }

  TEST_CASE("a loss parks the last of those that are left; below a unit all wait") {
    auto s = that_runs(in_units(2, 4, 2), {"a", "b", "c", "d"});
    CHECK(s.is_lost_and_ends("a") ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: b(0,1) c(2,3)",
                "to d: StandBy: generation 2 has 2 nodes of the 3 that are here, a whole number of "
                "units (--node_unit)"));
    s.is_sealed();
    s.is_lost("d");
    CHECK(s.is_lost_and_ends("c") == "");
    CHECK(s.core.current_phase() == phase::gathering);
  }

  TEST_CASE("MAX counts in units too: no world waits for a seventh of six") {
    auto s = unformed(in_units(2, 7, 2));
    for (const char* node : {"a", "b", "c", "d", "e"})
      CHECK(s.comes(node) == "");
    CHECK(s.comes("f").find("record GenerationProposed g1") == 0);
  }
}

TEST_SUITE("recovery_core: an elasticity config") {
  TEST_CASE("the largest valid world of the nodes that are here") {
    auto o = plain(1, 5);
    elasticity_config c;
    c.version = elasticity_config::rules::v0_1;
    c.max_train_batch_size = 12;
    c.micro_batch_sizes = {2};
    o.elastic = *elasticity::make(c); // 1, 2, 3 and 6 workers, so 1 or 3 nodes
    auto s = that_runs(o, {"a"});
    s.comes("b");
    CHECK(s.passes(100ms) ==
          "to b: StandBy: generation 1 has 1 node of the 2 that are here, the largest world the "
          "elasticity config allows");
    s.comes("c");
    CHECK(s.passes(100ms) == "stop g1: 2 more nodes are here");
    s.ends();
    s.is_sealed();
    CHECK(s.is_lost_and_ends("a").find("begin WorldProposed g3: b(0,1)") != std::string::npos);
    CHECK(s.last.find("to c: StandBy") != std::string::npos);
  }
}

TEST_SUITE("recovery_core: the budget of relaunches") {
  TEST_CASE("a node that has to be waited for is on record with the next number") {
    auto o = plain(2, 2);
    o.relaunches_max = 1;
    auto s = that_runs(o, {"a", "b"});
    CHECK(s.is_lost_and_ends("b") == "");
    CHECK(s.comes("c").find("record GenerationProposed g2, 1 relaunched") == 0);
    s.is_sealed();
    CHECK(s.is_lost_and_ends("a").find(
              "verdict failure: 1 of at least 2 nodes are left, and 1 of 1 relaunches are used up "
              "(--node-relaunches)") != std::string::npos);
    CHECK(s.comes("d").find("to d: Conclude failure") == 0);
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a smaller world, a larger one and a standby's help cost nothing") {
    auto o = plain(1, 3);
    o.relaunches_max = 0;
    auto s = that_runs(o, {"a", "b"});
    s.comes("c");
    s.passes(100ms);
    s.ends();
    s.is_sealed();
    s.comes("standby");
    s.is_lost_and_ends("b");
    s.is_sealed();
    s.passes(1h);
    CHECK(s.is_lost_and_ends("standby").find("record GenerationProposed g4\n") !=
          std::string::npos);
  }

  TEST_CASE("none at all, and one is needed") {
    auto o = plain(2, 2);
    o.relaunches_max = 0;
    auto s = that_runs(o, {"a", "b"});
    CHECK(s.is_lost_and_ends("b").find("1 of at least 2 nodes are left, and none may be waited "
                                       "for") != std::string::npos);
  }

  TEST_CASE("what was spent is remembered") {
    auto o = plain(2, 2);
    o.relaunches_max = 1;
    const auto spent = messages::author("master/recovery")
                           .write<messages::GenerationProposed>(generation{1}, [](auto b) {
                             b.setGeneration(1);
                             b.setRelaunches(1);
                           });
    planner_story s(o, planner_story::restarts(9), {spent.any(), sealed_record(1, {"a", "b"})});
    s.comes("a", {}, running_in(1));
    s.passes(15s);
    CHECK(s.ends("b did not come back").find("1 of 1 relaunches are used up") != std::string::npos);
  }
}
