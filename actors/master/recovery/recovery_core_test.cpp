#include "actors/limits.hpp"
#include "runtime/base/limits.hpp"
#include "tests/actors/planner_story.hpp"

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

const std::string cause = "rank 0 (node a, local rank 0, pid 100) failed: exit code 1";

} // namespace

TEST_SUITE("recovery_core: the end of a generation is judged") {
  TEST_CASE("a failure within the budget: recorded, then the next generation begins") {
    auto s = planner_story::two_that_run(3);
    CHECK(s.fails("a") == "");
    CHECK(s.core.current_phase() == phase::ending);
    CHECK(s.ends("it failed") ==
          lines("record RestartCounted g1 to a, restart 1 [a/0: exit code 1]",
                "record GenerationProposed g2",
                "begin WorldProposed g2: a(0,1) b(2,3), restart 1, counted against a"));
    CHECK(s.said.find(cause + "; restarting the workers (restart 1 of 3 of node a)") == 0);
    CHECK(s.core.current_phase() == phase::forming);
  }

  TEST_CASE("the last restart is used up by the one before the verdict") {
    auto s = planner_story::two_that_run(1);
    s.fails_and_ends("a");
    s.is_sealed();
    const std::string why = "rank 0 (node a, local rank 0, pid 100) failed: exit code 7; the only "
                            "restart of node a is used up (--max-restarts)";
    CHECK(s.fails_and_ends("a", {7}) ==
          lines("record Concluded failure: " + why,
                "to a,b: Conclude failure: " + why + " [a/0: exit code 7]", "announce the end",
                "verdict failure: " + why));
  }

  TEST_CASE("without restarts the first failure is the verdict") {
    auto s = planner_story::two_that_run(0);
    CHECK(s.fails_and_ends("a").find("verdict failure: " + cause + "; no restarts are allowed") !=
          std::string::npos);
  }

  TEST_CASE("a master that was told no number takes the most that a node says") {
    recovery_options o;
    o.max_restarts.reset();
    planner_story s(planner_story::sizes(2, 2), o);
    s.comes_with_restarts("a", 1);
    s.comes_with_restarts("b", 0);
    s.is_sealed();
    s.fails_and_ends("b");
    CHECK(s.said.find("restarting the workers (restart 1 of 1 of node b)") != std::string::npos);
    s.is_sealed();
    CHECK(s.fails_and_ends("b").find("the only restart of node b is used up") != std::string::npos);
  }

  TEST_CASE("a master that was told a number does not ask the nodes") {
    planner_story s(planner_story::sizes(1, 1), planner_story::restarts(0));
    s.comes_with_restarts("a", 9);
    s.is_sealed();
    CHECK(s.fails_and_ends("a").find("no restarts are allowed") != std::string::npos);
  }

  TEST_CASE("what else fails while the generation ends is part of the judgement") {
    auto s = planner_story::two_that_run(0);
    s.fails("a", {1, 2});
    s.fails("b", {9});
    s.stops("b", {9, 4});
    CHECK(s.ends("it failed")
              .find("[a/0: exit code 1, a/1: exit code 2, b/0: exit code 9, b/1: exit code 4]") !=
          std::string::npos);
  }

  TEST_CASE("the end of another generation, or the same one twice, is none") {
    auto s = planner_story::two_that_run(3);
    CHECK(text(s.core.generation_ended(s.now, generation{7}, "late")) == "");
    s.fails_and_ends("a");
    CHECK(text(s.core.generation_ended(s.now, generation{1}, "again")) == "");
    CHECK(s.core.current_phase() == phase::forming);
  }

  TEST_CASE("failures of other generations are not this one's") {
    auto s = planner_story::two_that_run(1);
    CHECK(text(s.core.failed(s.now, failed("a", 0))) == "");
    CHECK(text(s.core.failed(s.now, failed("a", 2))) == "");
    CHECK(s.core.current_phase() == phase::running);
  }

  TEST_CASE("the job has finished when every member has") {
    auto s = planner_story::two_that_run(0);
    s.finishes("a");
    CHECK(s.core.in_words() ==
          "generation 1 runs on 2 nodes, 1 finished; 0 restarts used, 0 for each node");
    s.finishes("b");
    CHECK(s.ends() == lines("record Concluded success: every worker finished",
                            "to a,b: Conclude success: every worker finished", "announce the end",
                            "verdict success: every worker finished"));
    CHECK(s.fails("a") == "");
    CHECK(s.is_lost("a") == "");
    CHECK(s.ends("late") == "");
  }

  TEST_CASE("having finished in one generation does not count in the next") {
    auto s = planner_story::two_that_run(1);
    s.finishes("a");
    s.fails_and_ends("b");
    s.is_sealed();
    s.finishes("b");
    CHECK(s.ends("odd").find("record GenerationProposed g3") != std::string::npos);
  }

  TEST_CASE("the user's wish ends the job, once, and with it the generation that is up") {
    auto s = planner_story::two_that_run(3);
    CHECK(text(s.core.abandon(s.now, "interrupted")) ==
          lines("record Concluded failure: interrupted", "to a,b: Conclude failure: interrupted",
                "announce the end", "stop g1, its nodes hear the verdict: interrupted",
                "verdict failure: interrupted"));
    CHECK(text(s.core.abandon(s.now, "interrupted")) == "");
    CHECK(s.is_sealed() == "");
    CHECK(s.ends() == "");
    CHECK(s.core.current_phase() == phase::concluded);
  }

  TEST_CASE("ends without any cause are not repeated for ever") {
    auto s = planner_story::two_that_run(9);
    for (unsigned i = 0; i < limits::unexplained_ends_max; ++i) {
      CHECK(s.ends("a bug").find("begin WorldProposed") != std::string::npos);
      s.is_sealed();
    }
    CHECK(s.ends("a bug").find("verdict failure: generation 6 ended, as the 5 before it, and no "
                               "node or worker has failed: a bug") != std::string::npos);
  }
}

TEST_SUITE("recovery_core: nodes that go and come") {
  TEST_CASE("a lost node costs nothing, and a standby takes its ranks") {
    auto s = planner_story::two_that_run(0);
    s.comes("c");
    CHECK(s.is_lost("b") == "");
    CHECK(s.core.current_phase() == phase::ending);
    CHECK(s.ends("node b is lost") ==
          lines("record GenerationProposed g2", "begin WorldProposed g2: a(0,1) c(2,3)"));
    CHECK(s.said == "node b is lost; restarting the workers (not counted against --max-restarts)");
  }

  TEST_CASE("a lost node is the cause of what fails at its peers, in whatever order it is heard") {
    for (const bool lost_first : {true, false}) {
      CAPTURE(lost_first);
      auto s = planner_story::two_that_run(0);
      s.comes("c");
      s.goes_away("b");
      s.now += 300ms;
      if (lost_first)
        s.is_lost("b");
      s.fails("a");
      if (!lost_first)
        s.is_lost("b");
      CHECK(s.ends("it failed").find("begin WorldProposed g2: a(0,1) c(2,3)") != std::string::npos);
      CHECK(s.last.find("RestartCounted") == std::string::npos);
    }
  }

  TEST_CASE("one that is lost long after the failure was not its cause") {
    auto s = planner_story::two_that_run(0);
    s.fails("a");
    s.now += limits::lease + 1ms;
    s.is_lost("b");
    CHECK(s.ends("it failed").find("verdict failure: " + cause) != std::string::npos);
  }

  TEST_CASE("an absence that ends well changes nothing") {
    auto s = planner_story::two_that_run(1);
    s.goes_away("b");
    CHECK(s.comes("b", {}, running_in(1)) == "");
    CHECK(s.core.current_phase() == phase::running);
    CHECK(s.fails_and_ends("a").find("record RestartCounted g1 to a") == 0);
  }

  TEST_CASE("a finished node that is lost has done its part") {
    auto s = planner_story::two_that_run(0);
    s.finishes("a");
    s.is_lost("a");
    CHECK(s.core.current_phase() == phase::running);
    s.comes("a", {}, nothing());
    s.finishes("b");
    CHECK(s.ends().find("verdict success") != std::string::npos);
  }

  TEST_CASE("a rack that is lost at once costs one new generation") {
    std::vector<node_name> nodes;
    for (char c = 'a'; c < 'm'; ++c)
      nodes.emplace_back(1, c);
    auto s = planner_story::that_runs(nodes, planner_story::sizes(2, 12));
    for (const char* node : {"c", "d", "e", "f"})
      CHECK(s.is_lost(node) == "");
    CHECK(s.ends("node c is lost") == "");
    CHECK(s.passes(250ms) ==
          lines("record GenerationProposed g2",
                "begin WorldProposed g2: a(0,1) b(2,3) g(4,5) h(6,7) i(8,9) j(10,11) k(12,13) "
                "l(14,15)"));
  }
}

TEST_SUITE("recovery_core: what people read") {
  TEST_CASE("how long the start took, once all nodes have started") {
    auto s = planner_story::two_that_run(1);
    s.now += 20ms;
    s.starts("a");
    CHECK(s.said == "");
    s.starts("b");
    CHECK(s.said == "all workers are started, 20.0 ms after the generation was formed");
    s.starts("b");
    CHECK(s.said == "");
  }

  TEST_CASE("how long training stood still, from the failure on") {
    auto s = planner_story::two_that_run(1);
    s.fails("a");
    s.now += 10ms;
    s.ends("it failed");
    s.now += 5ms;
    s.is_sealed();
    s.now += 5ms;
    s.starts("a");
    s.starts("b");
    CHECK(s.said ==
          "the workers run again, 20.0 ms after the failure (forming the generation took 15.0 ms, "
          "starting the workers 5.0 ms)");
    CHECK(s.core.in_words() ==
          "generation 2 runs on 2 nodes, 0 finished; 1 restart used, 1 for each "
          "node (node a: 1); 1 restart (program failed: 1)");
  }

  TEST_CASE("what it is doing") {
    planner_story s(2, 2);
    CHECK(s.core.in_words() == "gathering: 0 of 2 nodes present");
    s.comes("a");
    s.comes("b");
    CHECK(s.core.in_words() == "generation 1 of 2 nodes is being formed");
    s.is_sealed();
    s.fails("a");
    CHECK(s.core.in_words() == "generation 1 ends: " + cause);
  }
}

namespace {

std::string replaced_in(const recovery_core::effects& effects) {
  for (const auto& e : effects)
    if (const auto* r = std::get_if<recovery_core::replace>(&e))
      return r->node + " at " + r->address + (r->is_broken ? ", broken" : "");
  return {};
}

} // namespace

TEST_SUITE("recovery_core: the cluster") {
  TEST_CASE(
      "hears of a node that is lost, with its address, and of none that has left after the end") {
    auto s = planner_story::two_that_run(1);
    const auto lost = [&](const node_name& node) {
      std::vector<std::string> all;
      for (const auto& e : s.core.node_lost(s.now, testing::lost(node)))
        if (const auto* l = std::get_if<recovery_core::lose>(&e))
          all.push_back(l->node + " at " + l->address);
      return all;
    };
    CHECK(lost("b") == std::vector<std::string>{"b at b.lan"});
    CHECK(lost("b").empty());
    s.core.abandon(s.now, "the user");
    CHECK(lost("a").empty());
  }

  TEST_CASE("gives another machine for a node whose restarts are used up, also in a fixed size") {
    auto o = planner_story::restarts(1);
    o.cluster_replaces = true;
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2), o);
    s.now += 1h;
    s.fails_and_ends("b");
    s.is_sealed();
    s.now += 1h;
    s.fails("b");
    const auto effects = s.core.generation_ended(s.now, s.core.current(), "it failed");
    CHECK(replaced_in(effects) == "b at b.lan");
    CHECK(text(effects).find("to a,b: Leave g2, node b: rank 0 (node b, local rank 0, pid 100) "
                             "failed: exit code 1; the only restart of node b is used up "
                             "(--max-restarts)") != std::string::npos);
    CHECK(notes(effects).find("node b leaves, and another machine is wanted in its place") !=
          std::string::npos);
    CHECK(s.core.current_phase() == recovery_core::phase::gathering);
    // The next world is to find what b saves.
    CHECK(s.comes("c") == "");
    CHECK(s.passes(1min) == "");
    CHECK(s.is_lost("b").find("begin WorldProposed g3: a(0,1) c(2,3)") != std::string::npos);
  }

  TEST_CASE("is not waited for: a node that leaves has its time, and is told again on a new link") {
    auto o = planner_story::restarts(0);
    o.cluster_replaces = true;
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2), o);
    s.now += 1h;
    s.fails_and_ends("b");
    s.comes("c");
    SUBCASE("with its link lost") {
      CHECK(s.goes_away("b") == "");
      CHECK(s.comes("b").find("to b: Leave") == 0);
      CHECK(s.last.find("WorldProposed") == std::string::npos);
    }
    SUBCASE("with another life under its name") {
      CHECK(s.comes_as("b", incarnation{7}).find("begin WorldProposed") != std::string::npos);
    }
    SUBCASE("when it is late") {
      const auto within = 30s + limits::last_saves_within + 30s;
      CHECK(*s.core.next_wakeup() <= s.now + within);
      CHECK(s.passes(within - 1ms) == "");
      const auto late = s.passes(1ms);
      CHECK(late.find("evict b: ") == 0);
      CHECK(late.find("begin WorldProposed g2: a(0,1) c(2,3)") != std::string::npos);
    }
  }

  TEST_CASE("gives another machine for one with broken hardware, whatever MIN is") {
    auto o = planner_story::restarts(3);
    for (const bool gives : {false, true}) {
      o.cluster_replaces = gives;
      auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2), o);
      s.fails("b", {201});
      const auto effects = s.core.generation_ended(s.now, s.core.current(), "it failed");
      CHECK(replaced_in(effects) == (gives ? "b at b.lan, broken" : ""));
      CHECK((text(effects).find("mark the machine of b") != std::string::npos) == gives);
    }
  }

  TEST_CASE(
      "gives no further node: the job ends where that is fewer than MIN, and with the reason") {
    const ports::cluster::supply none{2, 1, "rank 1 gets no further pod: it has ended with 1", ""};
    SUBCASE("while nodes are waited for") {
      planner_story s(2, 2);
      s.comes("a");
      CHECK(text(s.core.supplied(s.now, none))
                .find("verdict failure: 1 of at least 2 nodes are here, and rank 1 gets no further "
                      "pod: it has ended with 1") != std::string::npos);
    }
    SUBCASE("as soon as a node is lost of a world that runs") {
      auto s = planner_story::two_that_run(3);
      CHECK(text(s.core.supplied(s.now, none)) == "");
      CHECK(
          s.is_lost_and_ends("b").find("verdict failure: 1 of at least 2 nodes are left, and rank "
                                       "1 gets no further pod") != std::string::npos);
    }
    SUBCASE("not where the job has been scaled since") {
      planner_story s(2, 2);
      s.comes("a");
      s.core.scale_wanted(s.now, 1,
                          messages::author("x").write<messages::ScaleRequest>({}, [](auto b) {
                            b.setNodesMin(2);
                            b.setNodesMax(3);
                          }));
      CHECK(text(s.core.supplied(s.now, none)) == "");
    }
    SUBCASE("not where fewer do") {
      planner_story s(1, 2);
      CHECK(text(s.core.supplied(s.now, none)) == "");
      CHECK(s.comes("a") == "");
      CHECK(s.passes(30s).find("begin WorldProposed g1: a(0,1)") != std::string::npos);
    }
  }
}
