#include "tests/actors/planner_story.hpp"

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

recovery_options with_check() {
  auto o = planner_story::restarts(3);
  o.checks_nodes = true;
  return o;
}

planner_story of(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  return planner_story(planner_story::sizes(nodes_min, nodes_max), with_check());
}

/// Nodes a and b run in generation 1, after a check.
planner_story that_runs(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  auto s = of(nodes_min, nodes_max);
  s.comes("a");
  s.comes("b");
  if (s.checks == 0)
    s.passes(30s);
  s.is_checked({"a", "b"});
  s.is_sealed();
  REQUIRE(s.core.current_phase() == recovery_core::phase::running);
  return s;
}

} // namespace

TEST_SUITE("recovery_core: the check before nodes take part") {
  TEST_CASE("a world is proposed when its nodes were found good") {
    auto s = of(2, 2);
    CHECK(s.comes("a") == "");
    CHECK(s.comes("b") == "check a b");
    // The answer is an event: nothing is due before it.
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(60s) == "");
    CHECK(s.is_checked({"a", "b"}) ==
          lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1) b(2,3)"));
  }

  TEST_CASE("what is not asked for is not done") {
    planner_story s(2, 2);
    s.comes("a");
    CHECK(s.comes("b").find("record GenerationProposed") == 0);
  }

  TEST_CASE("a faulty node leaves, and the job starts with those that are left") {
    auto s = of(2, 3);
    s.comes("a");
    s.comes("b");
    CHECK(s.comes("c") == "check a b c");
    // The eviction is on its way while the next world is proposed.
    CHECK(s.is_checked({"a", "c"}, {"b"}) == "evict b: node b is faulty");
    CHECK(s.passes(30s) ==
          lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1) c(2,3)"));
    CHECK(s.is_lost("b") == "");
  }

  TEST_CASE("too few are left: a replacement is checked with the others") {
    auto s = of(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.is_checked({"a"}, {"b"}) == "evict b: node b is faulty");
    s.is_lost("b");
    CHECK(s.comes("c") == "check a c");
    CHECK(s.is_checked({"a", "c"}) ==
          lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1) c(2,3)"));
  }

  TEST_CASE("nodes that fail with each other wait for a third one") {
    auto s = of(2, 3);
    s.comes("a");
    s.comes("b");
    CHECK(s.passes(30s) == "check a b");
    CHECK(s.is_checked({}, {}, {"a", "b"}) == "");
    CHECK(s.said.find("wait until another node is here") != std::string::npos);
    CHECK(s.passes(60s) == "");
    CHECK(s.said.find("beside 2 nodes that must be checked with others") != std::string::npos);
    CHECK(s.comes("c") == "check a b c");
    CHECK(s.is_checked({"a", "c"}, {"b"}) == "evict b: node b is faulty");
  }

  TEST_CASE("where one node is a job, one of those that fail with each other does it") {
    auto s = of(1, 2);
    s.comes("a");
    CHECK(s.comes("b") == "check a b");
    s.is_checked({}, {}, {"a", "b"});
    CHECK(s.said.find("node a takes part without the others") != std::string::npos);
    CHECK(s.passes(30s) == lines("record GenerationProposed g1", "begin WorldProposed g1: a(0,1)"));
  }

  TEST_CASE("of nodes that are good none is checked again when workers fail") {
    auto s = that_runs(2, 2);
    CHECK(s.fails_and_ends("a").find("check") == std::string::npos);
    CHECK(s.core.current() == generation{2});
  }

  TEST_CASE("a node that is broken ends a job of one node at once, if its launcher is the master") {
    // Others may come to a larger one, and to a master that stands alone.
    for (const std::uint32_t nodes_max : {1u, 3u})
      for (const bool beside : {false, true}) {
        CAPTURE(nodes_max);
        CAPTURE(beside);
        auto o = with_check();
        o.beside = beside ? "a" : "";
        planner_story s(planner_story::sizes(1, nodes_max), o);
        s.comes("a");
        if (s.checks == 0)
          s.passes(30s);
        s.is_checked({}, {"a"});
        const bool ends = s.core.current_phase() == recovery_core::phase::concluded;
        CHECK(ends == (beside && nodes_max == 1));
        CHECK((s.said.find("and it is the only one") != std::string::npos) == ends);
      }
  }

  TEST_CASE("when a machine seems to be broken all are checked again") {
    auto s = that_runs(2, 2);
    // 201 means broken hardware, and the job can not be without the node.
    CHECK(s.fails_and_ends("a", {201}).find("check a* b*") != std::string::npos);
  }

  TEST_CASE("so they are when the network failed, and not a program") {
    auto s = that_runs(2, 2);
    s.core.failed(s.now, failed_with_words("a", 1, "ncclRemoteError: A call failed"));
    CHECK(s.ends("it failed").find("check a* b*") != std::string::npos);
  }

  TEST_CASE("a newcomer is checked by itself before a generation is stopped for it") {
    auto s = that_runs(2, 3);
    CHECK(s.comes("c") == "check alone c");
    CHECK(s.passes(60s) == "");
    CHECK(s.is_checked({"c"}) == "");
    CHECK(s.passes(1s).find("stop g1") == 0);
    CHECK(s.ends() == "check a* b* c");
    CHECK(s.is_checked({"a", "b", "c"}) ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) b(2,3) c(4,5)"));
  }

  TEST_CASE("a newcomer that is broken by itself costs the job nothing") {
    auto s = that_runs(2, 3);
    s.comes("c");
    CHECK(s.is_checked({}, {"c"}) == "evict c: node c is faulty");
    CHECK(s.passes(60s) == "");
    CHECK(s.core.current_phase() == recovery_core::phase::running);
  }

  TEST_CASE(
      "a newcomer that only fails with others stops the job once, and not each time it comes") {
    auto s = that_runs(2, 3);
    s.comes("c");
    s.is_checked({"c"});
    CHECK(s.passes(1s).find("stop g1") == 0);
    CHECK(s.ends() == "check a* b* c");
    CHECK(s.is_checked({"a", "b"}, {"c"}).find("evict c: node c is faulty") == 0);
    s.is_lost("c");
    s.is_sealed();
    REQUIRE(s.core.current_phase() == recovery_core::phase::running);
    CHECK(s.comes_as("c", incarnation{2}) == "check alone c");
    s.is_checked({"c"});
    CHECK(s.passes(60s).find("stop") == std::string::npos);
    CHECK(s.core.current_phase() == recovery_core::phase::running);
    // When a world is formed anyway it gets its chance, and a repaired one is trusted again.
    CHECK(s.is_lost_and_ends("b") == "check a* c");
    CHECK(s.is_checked({"a", "c"}).find("record GenerationProposed g3") == 0);
  }

  TEST_CASE("newcomers that come during a check are checked after it") {
    auto s = that_runs(2, 4);
    CHECK(s.comes("c") == "check alone c");
    CHECK(s.comes("d") == "");
    CHECK(s.is_checked({"c"}) == "check alone d");
  }

  TEST_CASE("a check of newcomers does not hold up the next generation") {
    auto s = that_runs(2, 3);
    s.comes("c");
    const auto older = s.checks;
    CHECK(s.is_lost_and_ends("b").find("check a* c") != std::string::npos);
    CHECK(s.checks == older + 1);
    // The answer to the older question comes late, and means nothing any more.
    s.core.nodes_checked(s.now, older, planner_story::checked({"c"}, {}, {}));
    CHECK(s.is_checked({"a", "c"}).find("record GenerationProposed g2") == 0);
  }

  TEST_CASE("another life of a node is not the one that was checked") {
    auto s = of(2, 2);
    s.comes("a");
    s.comes("b");
    s.is_lost("b");
    s.comes_as("b", incarnation{77});
    CHECK(s.is_checked({"a", "b"}) == "check a b");
  }

  TEST_CASE("a node that trains already is not probed") {
    auto s = of(2, 2);
    const doing trains{messages::NodeState::Phase::RUNNING, generation{3}};
    s.comes("a", {}, trains);
    CHECK(s.comes("b", {}, trains).find("check") == std::string::npos);
  }

  TEST_CASE("a check that can not be made is tried again, and then done without") {
    auto s = of(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.check_fails() == "");
    CHECK(s.core.next_wakeup() == s.now + 1s);
    CHECK(s.passes(1s) == "check a b");
    s.check_fails();
    CHECK(s.passes(1s) == "check a b");
    CHECK(s.check_fails().find("record GenerationProposed g1") == 0);
    CHECK(s.said.find("the nodes take part unchecked") != std::string::npos);
  }

  TEST_CASE("a job that is over has no use for the answer") {
    auto s = of(2, 2);
    s.comes("a");
    s.comes("b");
    (void)s.core.abandon(s.now, "the user has had enough");
    CHECK(s.is_checked({"a", "b"}) == "");
    CHECK(s.check_fails() == "");
  }
}
