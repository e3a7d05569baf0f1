#include "tests/actors/planner_story.hpp"

#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

TEST_SUITE("recovery_core: gathering") {
  TEST_CASE("with MIN equal to MAX a world is proposed as soon as all are here") {
    planner_story s(2, 2);
    CHECK(s.comes("a") == "");
    CHECK(s.comes("b") ==
          lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1) b(2,3)"));
    CHECK(s.core.current() == generation{1});
  }

  TEST_CASE("between MIN and MAX there is a last call, and each node that hears it takes part") {
    planner_story s(1, 4);
    CHECK(s.comes("a") == "");
    CHECK(s.core.next_wakeup() == dawn + 30s);
    CHECK(s.passes(29s) == "");
    CHECK(s.comes("b") == "");
    CHECK(s.passes(1s) ==
          lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1) b(2,3)"));
  }

  TEST_CASE("the last call begins anew when MIN was lost again") {
    planner_story s(2, 4);
    s.comes("a");
    s.comes("b");
    s.passes(29s);
    CHECK(s.is_lost("b") == "");
    s.comes("c");
    CHECK(s.passes(29s) == "");
    CHECK(s.passes(1s).find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("MAX ends the last call") {
    planner_story s(1, 2);
    s.comes("a");
    CHECK(s.comes("b").find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a node that is away does not count") {
    planner_story s(2, 2);
    s.comes("a");
    s.goes_away("a");
    CHECK(s.comes("b") == "");
    CHECK(s.comes("a").find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a hello repeated does not count twice") {
    planner_story s(2, 2);
    s.comes("a");
    CHECK(s.comes("a") == "");
  }

  TEST_CASE("standbys beyond MAX wait, the first to come take part") {
    planner_story s(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.comes("c") ==
          "to c: StandBy: generation 1 has 2 nodes, the most there can be (--nnodes)");
    CHECK(s.is_lost("b") == "");
    CHECK(s.ends("node b is lost") ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) c(2,3)"));
    CHECK(s.said == "");
  }

  TEST_CASE("members hear that standbys could take their place, again on each new link") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2));
    CHECK(s.dispensable == "");
    const auto heard_when = [&s](auto&& happens) {
      s.dispensable.clear();
      happens();
      return s.dispensable;
    };
    CHECK(heard_when([&] { s.comes("c"); }) == "to a,b: Dispensable g1: yes");
    CHECK(heard_when([&] { s.comes("d"); }) == "");
    CHECK(heard_when([&] { s.goes_away("b"); }) == "");
    CHECK(heard_when([&] { s.comes("b", {}, running_in(1)); }) == "to b: Dispensable g1: yes");
    CHECK(heard_when([&] { s.is_lost("c"); }) == "");
    CHECK(heard_when([&] { s.is_lost("d"); }) == "to a,b: Dispensable g1: no");
  }

  TEST_CASE("members hear that a world of MIN nodes can do without none of them") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 3));
    CHECK(s.dispensable == "to a,b: Dispensable g1: no");
    // In so many words, also where a node that was told --nnodes takes it for granted: it may not
    // have been told.
    s = planner_story::that_runs({"a", "b"}, planner_story::sizes(1, 2));
    CHECK(s.dispensable == "to a,b: Dispensable g1: yes");
  }

  TEST_CASE("too few until the join timeout: the job cannot be formed, and this is said once") {
    planner_story s(2, 2);
    s.comes("a");
    s.passes(590s);
    CHECK(s.core.next_wakeup() == dawn + 600s);
    CHECK(s.passes(10s).find("verdict failure: only 1 of at least 2 nodes joined within 10 min") !=
          std::string::npos);
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("the join timeout does not end a last call: enough have joined") {
    planner_story s(1, 4);
    s.passes(590s);
    s.comes("a");
    CHECK(s.passes(10s) == "");
    CHECK(s.passes(20s).find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a node that is away has not joined") {
    planner_story s(2, 2);
    s.comes("a");
    s.goes_away("a");
    CHECK(s.passes(600s).find("verdict failure: only 0 of at least 2 nodes joined within 10 min") !=
          std::string::npos);
  }

  TEST_CASE("a node rank that does not exist or is taken is refused for good") {
    planner_story s(3, 3);
    CHECK(s.comes("a", 3) == "evict a: node rank 3 does not exist among 3 nodes (--node-rank)");
    CHECK(s.comes("b", 2) == "");
    CHECK(s.comes("c", 2) == "evict c: node rank 2 is taken by node b (--node-rank)");
    // The refused are forgotten: what membership then says of them means nothing.
    CHECK(s.is_lost("c") == "");
    CHECK(s.comes("d", 0) == "");
    CHECK(s.comes("e").find(
              "record GenerationProposed g1\nbegin WorldProposed g1: d(0,1) e(2,3) b(4,5)") == 0);
  }

  TEST_CASE("the rank of a node that is away stays taken; of one that is lost it is free") {
    planner_story s(2, 2);
    s.comes("a", 0);
    s.goes_away("a");
    CHECK(s.comes("b", 0) == "evict b: node rank 0 is taken by node a (--node-rank)");
    s.is_lost("a");
    CHECK(s.comes("b", 0) == "");
  }

  TEST_CASE("what comes about an unknown node is nothing") {
    planner_story s(1, 2);
    CHECK(s.goes_away("x") == "");
    CHECK(s.is_lost("x") == "");
    CHECK(s.core.in_words() == "gathering: 0 of 2 nodes present");
  }
}

TEST_SUITE("recovery_core: losses that come together") {
  const std::vector<node_name> six{"a", "b", "c", "d", "e", "f"};

  TEST_CASE("are answered by one world, once no node has been lost for an eighth of the lease") {
    auto s = planner_story::that_runs(six, planner_story::sizes(2, 6));
    s.is_lost("a");
    s.is_lost("b");
    CHECK(s.ends("node a is lost") == "");
    CHECK(s.said.find("4 of at most 6 nodes are here, which is enough: starting when the other "
                      "nodes are back or lost") != std::string::npos);
    CHECK(s.core.next_wakeup() == s.now + 250ms);
    CHECK(s.passes(200ms) == "");
    CHECK(s.is_lost("c") == "");
    CHECK(s.passes(249ms) == "");
    CHECK(s.passes(1ms) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: d(0,1) e(2,3) f(4,5)"));
  }

  TEST_CASE(
      "are waited for a moment only if their connections were closed, however long the lease") {
    auto s = planner_story::that_runs(six, planner_story::sizes(2, 6));
    s.goes_away("a");
    s.goes_away("b");
    s.is_lost("a");
    CHECK(s.is_lost("b") == "");
    CHECK(s.ends("node a is lost") == "");
    CHECK(s.core.next_wakeup() == s.now + 100ms);
    CHECK(s.passes(99ms) == "");
    CHECK(s.passes(1ms).find("record GenerationProposed g2") == 0);
  }

  TEST_CASE("are waited for with as many standbys as it takes, which may be lost with them") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2));
    for (const auto* standby : {"c", "d", "e"})
      s.comes(standby);
    s.is_lost("a");
    s.goes_away("b");
    CHECK(s.ends("node a is lost") == "");
    CHECK(s.passes(400ms) == "");
    CHECK(s.is_lost("b") == "");
    CHECK(s.is_lost("c") == "");
    CHECK(s.passes(250ms) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: d(0,1) e(2,3)"));
  }

  TEST_CASE("are not waited for if the member that is away is back") {
    auto s = planner_story::that_runs({"a", "b", "c"}, planner_story::sizes(2, 3));
    s.is_lost("a");
    s.goes_away("b");
    CHECK(s.ends("node a is lost") == "");
    CHECK(s.comes("b").find("record GenerationProposed g2") == 0);
  }

  TEST_CASE("are waited for no longer than a lease") {
    std::vector<node_name> many;
    for (int i = 0; i < 20; ++i)
      many.push_back(fmt::format("n{:02}", i));
    auto s = planner_story::that_runs(many, planner_story::sizes(2, 20));
    s.is_lost("n00");
    s.is_lost("n01");
    s.ends("node n00 is lost");
    for (int i = 2; i < 12; ++i) {
      CHECK(s.passes(199ms) == "");
      CHECK(s.is_lost(many[static_cast<std::size_t>(i)]) == "");
    }
    CHECK(s.passes(10ms).find("record GenerationProposed g2") == 0);
  }

  TEST_CASE("are not those of another hour") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2));
    for (const auto* standby : {"c", "d"})
      s.comes(standby);
    s.is_lost("c");
    s.passes(1h);
    s.is_lost("a");
    CHECK(s.ends("node a is lost").find("record GenerationProposed g2") == 0);
  }
}

TEST_SUITE("recovery_core: what people read") {
  TEST_CASE(
      "a wait for nodes is told now and again, with what is missing and how long it may last") {
    planner_story s(2, 2);
    s.comes("a");
    CHECK(s.core.next_wakeup() == dawn + 10s);
    s.now = dawn + 10s;
    CHECK(
        notes(s.core.tick(s.now)) ==
        "1 of at least 2 nodes are here after 10.0 s; the job ends in 9 min 50 s unless more join "
        "(start a launcher on another node)");
    CHECK(notes(s.core.tick(s.now)) == "");
    CHECK(s.core.next_wakeup() == dawn + 30s);
  }

  TEST_CASE("enough nodes, but not all: when it will start") {
    planner_story s(2, 3);
    s.comes("a");
    s.comes("b");
    CHECK(s.said ==
          lines("node b joined (2 of 3)",
                "2 of at most 3 nodes are here, which is enough: starting in 30.0 s unless the "
                "others come first"));
    CHECK(s.core.next_wakeup() == dawn + 30s);
  }
}
