#include "tests/actors/rendezvous_story.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = rendezvous_core::phase;

namespace {

/// As users have it who say no more than --nnodes.
rendezvous_options plain(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  auto o = rendezvous_story::options(nodes_min, nodes_max);
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

/// These nodes are a running world, in generation 1.
rendezvous_story that_runs(const rendezvous_options& o, const std::vector<node_name>& nodes) {
  rendezvous_story s(o);
  for (const auto& node : nodes)
    s.comes(node);
  if (s.core.current_phase() == phase::gathering)
    s.passes(o.settle);
  s.all_get_ready(nodes);
  REQUIRE(s.core.current_phase() == phase::running);
  return s;
}

} // namespace

TEST_SUITE("rendezvous_core: how long the first world waits") {
  TEST_CASE("a lone node starts when nobody has come for a moment") {
    rendezvous_story s(plain(1, 2));
    CHECK(s.comes("a") == "");
    CHECK(s.core.next_wakeup() == dawn + 500ms);
    CHECK(s.passes(499ms) == "");
    CHECK(s.passes(1ms) == lines("record GenerationProposed g1", "to a: Prepare g1: a(0,1)"));
  }

  TEST_CASE("who comes within that moment is waited for again, and MAX starts at once") {
    rendezvous_story s(plain(1, 3));
    s.comes("a");
    s.passes(400ms);
    CHECK(s.comes("b") == "");
    CHECK(s.passes(499ms) == "");
    CHECK(s.comes("c").find("to a,b,c: Prepare g1") != std::string::npos);
  }

  TEST_CASE("nodes that keep coming do not hold it up for ever") {
    rendezvous_story s(plain(1, 99));
    for (int i = 0; i < 12; ++i) {
      CHECK(s.comes(fmt::format("n{:02}", i)) == "");
      CHECK(s.passes(400ms) == "");
    }
    s.comes("last");
    CHECK(s.core.next_wakeup() == dawn + 5s);
    CHECK(s.passes(200ms).find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a node that goes away for a moment is no newcomer when it is back") {
    rendezvous_story s(plain(1, 3));
    s.comes("a");
    s.comes("b");
    s.passes(400ms);
    s.goes_away("b");
    s.comes("b");
    CHECK(s.passes(100ms).find("to a,b: Prepare g1") != std::string::npos);
  }

  TEST_CASE("what is said until then") {
    rendezvous_story s(plain(1, 2));
    CHECK(notes(s.core.node_present(s.now, present("a"))) ==
          lines("node a is here (1 of 2)",
                "1 of at most 2 nodes are here, which is enough: starting when nobody has come for "
                "500 ms, within 5.0 s"));
  }
}

TEST_SUITE("rendezvous_core: a running world grows") {
  TEST_CASE("a newcomer is told to recovery a moment later, once; it asks for the next") {
    auto s = that_runs(plain(1, 3), {"a"});
    s.passes(1h);
    CHECK(s.comes("b") == "");
    CHECK(s.core.next_wakeup() == s.now + 100ms);
    CHECK(s.passes(100ms) == "inform recovery: NodesWaiting g1: 1 more node is here");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.reforms(1, 0) == lines("to a: Stop g1: once more", "record GenerationProposed g2",
                                   "to a,b: Prepare g2: a(0,1) b(2,3)"));
  }

  TEST_CASE("several that come together are one interruption") {
    auto s = that_runs(plain(1, 9), {"a"});
    s.passes(1h);
    for (const char* node : {"b", "c", "d"}) {
      CHECK(s.comes(node) == "");
      CHECK(s.passes(50ms) == "");
    }
    CHECK(s.passes(50ms) == "inform recovery: NodesWaiting g1: 3 more nodes are here");
  }

  TEST_CASE("one that comes while the world is being prepared is taken right after") {
    rendezvous_story s(plain(1, 3));
    s.comes("a");
    s.passes(500ms);
    CHECK(s.comes("b") == "");
    CHECK(s.core.current_phase() == phase::preparing);
    s.passes(50ms);
    s.gets_ready("a", 1, 4000);
    CHECK(s.core.next_wakeup() == s.now + 50ms);
    CHECK(s.passes(50ms) == "inform recovery: NodesWaiting g1: 1 more node is here");
  }

  TEST_CASE("nobody grows while a member is away: first it is known whether it is lost") {
    auto s = that_runs(plain(1, 3), {"a", "b"});
    s.goes_away("b");
    s.comes("c");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1s) == "");
    s.comes("b", {}, running_in(1));
    CHECK(s.passes(100ms) == "inform recovery: NodesWaiting g1: 1 more node is here");
  }

  TEST_CASE("a recovery that has started anew is told again: then all links have ended") {
    auto s = that_runs(plain(1, 3), {"a"});
    s.comes("b");
    s.passes(100ms);
    s.goes_away("a");
    s.comes("a", {}, running_in(1));
    CHECK(s.passes(100ms) == "inform recovery: NodesWaiting g1: 1 more node is here");
  }

  TEST_CASE("nodes that come and go interrupt ever more rarely") {
    auto s = that_runs(plain(1, 2), {"a"});
    std::vector<duration> waits;
    for (std::uint64_t g = 1; g < 12;) {
      s.comes("b");
      waits.push_back(*s.core.next_wakeup() - s.now);
      s.passes(waits.back());
      s.reforms(g++, 0);
      s.all_get_ready({"a", "b"});
      s.is_lost("b");
      s.reforms(g++, 0);
      s.all_get_ready({"a"});
    }
    CHECK(waits == std::vector<duration>{100ms, 100ms, 400ms, 1600ms, 6400ms, 25'600ms});
  }
}

TEST_SUITE("rendezvous_core: spares") {
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
    CHECK(s.comes("a", {}, running_in(1)).find("StandBy") == std::string::npos);
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a member whose place was taken while it was away ends what it still runs") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    s.comes("c");
    s.goes_away("b");
    CHECK(s.reforms(1, 1).find("Prepare g2: a(0,1) c(2,3)") != std::string::npos);
    const auto* const stop = "to b: Stop g1: generation 1 ended while the node was away";
    SUBCASE("it comes back while the next one is prepared") {
      CHECK(s.comes("b", {}, running_in(1)).find(stop) == 0);
    }
    SUBCASE("it comes back beside the next one") {
      s.all_get_ready({"a", "c"});
      CHECK(
          s.comes("b", {}, running_in(1)) ==
          lines(stop, "to b: StandBy: generation 2 has 2 nodes, the most there can be (--nnodes)"));
      s.goes_away("b");
      CHECK(s.comes("b", {}, idle_after(1)).find("Stop") == std::string::npos);
    }
  }

  TEST_CASE("a member that was away when its generation was stopped is told so") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    s.goes_away("b");
    s.reforms(1, 1);
    s.is_lost("a");
    CHECK(s.comes("b", {}, running_in(1)) ==
          "to b: Stop g1: generation 1 ended while the node was away");
  }

  TEST_CASE("whatever the members do meanwhile") {
    SUBCASE("one is away") {
      auto s = that_runs(plain(1, 2), {"a", "b"});
      s.goes_away("b");
      CHECK(s.comes("c") == told);
    }
    SUBCASE("one is lost, and its part was done") {
      auto s = that_runs(plain(1, 2), {"a", "b"});
      s.is_lost("b");
      CHECK(s.comes("c") == told);
    }
    SUBCASE("they are being told to get ready") {
      rendezvous_story s(2, 2);
      s.comes("a");
      s.comes("b");
      CHECK(s.comes("c") == told);
      CHECK(s.all_get_ready({"a", "b"}).find("StandBy") == std::string::npos);
      CHECK(s.passes(1h) == "");
    }
    SUBCASE("generations end one after the other") {
      auto s = that_runs(plain(2, 2), {"a", "b"});
      for (std::uint64_t g = 1; g < 6; ++g) {
        s.reforms(g, 0);
        s.all_get_ready({"a", "b"});
      }
      CHECK(s.comes("c").find("to c: StandBy: generation 6") == 0);
    }
    SUBCASE("they have not yet come back to a master that was restarted") {
      rendezvous_story s(2, 2, {proposed_record(1), sealed_record(1, {"a", "b"})});
      CHECK(s.comes("c") == told);
    }
  }

  TEST_CASE("it takes the ranks of who is lost, at once") {
    auto s = that_runs(plain(3, 3), {"a", "b", "c"});
    s.comes("spare");
    s.passes(1h);
    s.is_lost("b");
    CHECK(s.reforms(1, 0) == lines("to a,b,c: Stop g1: once more", "record GenerationProposed g2",
                                   "to a,spare,c: Prepare g2: a(0,1) spare(2,3) c(4,5)"));
  }

  TEST_CASE("a spare that is away holds nobody up") {
    auto s = that_runs(plain(1, 2), {"a", "b"});
    s.comes("spare");
    s.goes_away("spare");
    s.is_lost("b");
    CHECK(s.reforms(1, 0).find("to a: Prepare g2: a(0,1)") != std::string::npos);
  }
}

TEST_SUITE("rendezvous_core: ranks from world to world") {
  TEST_CASE("a smaller world closes up, and who comes later comes last") {
    auto s = that_runs(plain(1, 3), {"a", "b", "c"});
    s.passes(1h);
    s.is_lost("a");
    CHECK(s.reforms(1, 0).find("to b,c: Prepare g2: b(0,1) c(2,3)") != std::string::npos);
    s.all_get_ready({"b", "c"});
    s.passes(1h);
    s.comes("a");
    s.passes(100ms);
    CHECK(s.reforms(2, 0).find("to b,c,a: Prepare g3: b(0,1) c(2,3) a(4,5)") != std::string::npos);
  }

  TEST_CASE("a proposal that came to nothing moves nobody") {
    auto s = that_runs(plain(2, 3), {"a", "b", "c"});
    s.is_lost("b");
    CHECK(s.reforms(1, 0).find("to a,c: Prepare g2") != std::string::npos);
    s.comes("d");
    CHECK(s.is_lost("a").find("to d,c: Prepare g3: d(0,1) c(2,3)") != std::string::npos);
  }
}

TEST_SUITE("rendezvous_core: units") {
  TEST_CASE("a world has whole units; who is left over stands by") {
    rendezvous_story s(in_units(2, 6, 2));
    for (const char* node : {"a", "b", "c"})
      s.comes(node);
    CHECK(s.passes(500ms) ==
          lines("record GenerationProposed g1", "to a,b: Prepare g1: a(0,1) b(2,3)",
                "to c: StandBy: generation 1 has 2 nodes of the 3 that are here, a whole number of "
                "units (--node_unit)"));
  }

  TEST_CASE("one newcomer is not enough, the second makes a unit") {
    auto s = that_runs(in_units(2, 6, 2), {"a", "b"});
    s.comes("c");
    CHECK(s.passes(100ms).find("to c: StandBy") == 0);
    s.comes("d");
    CHECK(s.passes(100ms) == "inform recovery: NodesWaiting g1: 2 more nodes are here");
  }

  TEST_CASE("a loss parks the last of those who are left; below a unit all wait") {
    auto s = that_runs(in_units(2, 4, 2), {"a", "b", "c", "d"});
    s.is_lost("a");
    CHECK(s.reforms(1, 0) ==
          lines("to a,b,c,d: Stop g1: once more", "record GenerationProposed g2",
                "to b,c: Prepare g2: b(0,1) c(2,3)",
                "to d: StandBy: generation 2 has 2 nodes of the 3 that are here, a whole number of "
                "units (--node_unit)"));
    s.all_get_ready({"b", "c"});
    s.is_lost("d");
    s.is_lost("c");
    CHECK(s.reforms(2, 0) == "to b,c: Stop g2: once more");
    CHECK(s.core.current_phase() == phase::gathering);
  }

  TEST_CASE("MAX counts in units too: nobody waits for a seventh of six") {
    rendezvous_story s(in_units(2, 7, 2));
    for (const char* node : {"a", "b", "c", "d", "e"})
      CHECK(s.comes(node) == "");
    CHECK(s.comes("f").find("record GenerationProposed g1") == 0);
  }
}

TEST_SUITE("rendezvous_core: an elasticity config") {
  TEST_CASE("the largest valid world of those who are here") {
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
    CHECK(s.passes(100ms) == "inform recovery: NodesWaiting g1: 2 more nodes are here");
    s.reforms(1, 0);
    s.all_get_ready({"a", "b", "c"});
    s.is_lost("a");
    CHECK(s.reforms(2, 0).find("to b: Prepare g3: b(0,1)") != std::string::npos);
    CHECK(s.last.find("to c: StandBy") != std::string::npos);
  }
}

TEST_SUITE("rendezvous_core: a node that shall be given up") {
  TEST_CASE("is, if a world can be formed without it") {
    auto s = that_runs(plain(1, 2), {"a", "b"});
    CHECK(s.reforms(1, 0, "a") == lines("to a,b: Stop g1: once more", "expel a: once more",
                                        "record GenerationProposed g2",
                                        "to b: Prepare g2: b(0,1)"));
    CHECK(s.is_lost("a") == "");
  }

  TEST_CASE("a spare makes up for it") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    s.comes("c");
    CHECK(s.reforms(1, 0, "a").find("to c,b: Prepare g2: c(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("is not if it is needed: then nothing happens but an answer") {
    auto s = that_runs(plain(2, 2), {"a", "b"});
    CHECK(s.reforms(1, 0, "a") == "inform recovery: Indispensable g1: a");
    CHECK(s.core.current_phase() == phase::running);
    CHECK(s.reforms(1, 1).find("to a,b: Prepare g2") != std::string::npos);
  }
}

TEST_SUITE("rendezvous_core: the budget of relaunches") {
  TEST_CASE("a node that has to be waited for is on record with the next number") {
    auto o = plain(2, 2);
    o.relaunches_max = 1;
    auto s = that_runs(o, {"a", "b"});
    s.is_lost("b");
    CHECK(s.reforms(1, 0) == "to a,b: Stop g1: once more");
    CHECK(s.comes("c").find("record GenerationProposed g2, 1 relaunched") == 0);
    s.all_get_ready({"a", "c"});
    s.is_lost("a");
    CHECK(s.reforms(2, 0) ==
          lines("to a,c: Stop g2: once more",
                "inform recovery: Unformable: 1 of at least 2 nodes are left, and 1 of 1 "
                "relaunches are used up (--node-relaunches)"));
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a smaller world, a larger one and a spare's help cost nothing") {
    auto o = plain(1, 3);
    o.relaunches_max = 0;
    auto s = that_runs(o, {"a", "b"});
    s.comes("c");
    s.reforms(1, 0);
    s.all_get_ready({"a", "b", "c"});
    s.comes("spare");
    s.is_lost("b");
    s.reforms(2, 0);
    s.all_get_ready({"a", "spare", "c"});
    s.is_lost("spare");
    CHECK(s.reforms(3, 0).find("record GenerationProposed g4\n") != std::string::npos);
  }

  TEST_CASE("none at all, and one is needed") {
    auto o = plain(2, 2);
    o.relaunches_max = 0;
    auto s = that_runs(o, {"a", "b"});
    s.is_lost("b");
    CHECK(s.reforms(1, 0).find("1 of at least 2 nodes are left, and none may be waited for") !=
          std::string::npos);
  }

  TEST_CASE("given up is given up: who comes then only reminds recovery, and starts nothing") {
    auto o = plain(2, 2);
    o.relaunches_max = 0;
    auto s = that_runs(o, {"a", "b"});
    s.is_lost("b");
    s.reforms(1, 0);
    CHECK(s.comes("c") == "inform recovery: Unformable: too few nodes were there in time");
    CHECK(s.core.current_phase() == phase::gathering);
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("what was spent is remembered") {
    auto o = plain(2, 2);
    o.relaunches_max = 1;
    const auto spent = messages::author("master/rendezvous")
                           .write<messages::GenerationProposed>(generation{1}, [](auto b) {
                             b.setGeneration(1);
                             b.setRelaunches(1);
                           });
    rendezvous_story s(o, {spent.any(), sealed_record(1, {"a", "b"})});
    s.comes("a", {}, running_in(1));
    CHECK(s.passes(15s).find("NodeLost b") != std::string::npos);
    CHECK(s.reforms(1, 0).find("1 of 1 relaunches are used up") != std::string::npos);
  }
}
