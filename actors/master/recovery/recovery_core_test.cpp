#include "actors/master/recovery/recovery_core.hpp"

#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

/// A master's recovery through the eyes of whoever reads its decisions.
struct story {
  explicit story(std::uint32_t max_restarts, const std::vector<messages::any_msg>& past = {})
      : core(recovery_options{max_restarts}, messages::author("master/recovery")) {
    recalled = text(core.recall(dawn, past));
  }

  std::string begins(std::uint64_t g, const std::vector<node_name>& nodes = {"a", "b"},
                     std::uint32_t restart_count = 0) {
    return text(core.sealed(now, sealed(g, nodes, restart_count)));
  }
  std::string fails(const node_name& node, std::uint64_t g, std::vector<int> codes = {1}) {
    return text(core.failed(now, failed(node, g, codes)));
  }
  std::string finishes(const node_name& node, std::uint64_t g) {
    return text(core.finished(now, finished(node, g)));
  }
  std::string starts(const node_name& node, std::uint64_t g) {
    return notes(core.running(now, running(node, g)));
  }
  std::string returns(const node_name& node, const doing& d) {
    return text(core.node_present(now, present(node, d)));
  }
  std::string goes_away(const node_name& node) { return text(core.node_away(now, away(node))); }
  std::string is_lost(const node_name& node) { return text(core.node_lost(now, lost(node))); }

  recovery_core core;
  instant now = dawn;
  std::string recalled;
};

/// Generation 1 on a and b.
story two_nodes(std::uint32_t max_restarts) {
  story s(max_restarts);
  s.begins(1);
  return s;
}

const std::string cause = "rank 0 (node a, local rank 0, pid 100) failed: exit code 1";

} // namespace

TEST_SUITE("recovery_core: what a failure costs") {
  TEST_CASE("a failure within the budget: charged, recorded, then the next generation asked for") {
    auto s = two_nodes(3);
    CHECK(s.fails("a", 1) == lines("record RestartCharged g1 to a, restart 1 [a/0: exit code 1]",
                                   "instruct Reform g1, restart 1: " + cause));
    CHECK(s.core.current_phase() == phase::reforming);
  }

  TEST_CASE("the last restart is used up by the one before the verdict") {
    auto s = two_nodes(1);
    s.fails("a", 1);
    s.begins(2, {"a", "b"}, 1);
    const std::string why = "rank 0 (node a, local rank 0, pid 100) failed: exit code 7; all 1 "
                            "restarts of node a are used up (--max-restarts)";
    CHECK(s.fails("a", 2, {7}) == lines("record Concluded failure: " + why,
                                        "instruct Conclude failure: " + why + " [a/0: exit code 7]",
                                        "verdict failure: " + why));
  }

  TEST_CASE("without restarts the first failure is the verdict") {
    auto s = two_nodes(0);
    const auto said = s.fails("a", 1);
    CHECK(said.find("verdict failure: " + cause + "; no restarts are allowed") !=
          std::string::npos);
  }

  TEST_CASE("one generation is charged once, however much of it fails") {
    auto s = two_nodes(3);
    s.fails("a", 1);
    CHECK(s.fails("b", 1) == "");
    CHECK(s.fails("a", 1, {1, 2}) == "");
    CHECK(s.is_lost("b") == "");
    CHECK(s.core.current_phase() == phase::reforming);
  }

  TEST_CASE("failures of other generations are not this one's") {
    auto s = two_nodes(1);
    CHECK(s.fails("a", 0) == "");
    CHECK(s.fails("a", 2) == "");
    s.fails("a", 1);
    s.begins(2, {"a", "b"}, 1);
    CHECK(s.fails("b", 1) == "");
    CHECK(s.core.current_phase() == phase::watching);
  }

  TEST_CASE("before any generation is sealed nothing can fail") {
    story s(1);
    CHECK(s.fails("a", 0) == "");
    CHECK(s.finishes("a", 0) == "");
    CHECK(s.is_lost("a") == "");
    CHECK(s.core.in_words() == "no generation runs");
  }

  TEST_CASE("the root cause is named first, then what followed in the order it became known") {
    auto s = two_nodes(0);
    s.goes_away("b");
    CHECK(s.fails("a", 1, {1, 2}) == "");
    CHECK(s.returns("b", failed_in(1, {9}))
              .find("[a/0: exit code 1, a/1: exit code 2, b/0: exit code 9]") != std::string::npos);
  }

  TEST_CASE("a report repeated does not list a failure twice") {
    auto s = two_nodes(0);
    s.goes_away("b");
    s.fails("a", 1, {1});
    s.fails("a", 1, {1, 2});
    s.goes_away("a");
    s.returns("a", failed_in(1, {1, 2}));
    CHECK(s.returns("b", running_in(1)).find("[a/0: exit code 1, a/1: exit code 2]") !=
          std::string::npos);
  }

  TEST_CASE("only so many failures are kept") {
    auto s = two_nodes(0);
    const auto said = s.fails("a", 1, std::vector<int>(limits::failures_kept + 5, 1));
    CHECK(said.find("a/63: exit code 1]") != std::string::npos);
    CHECK(said.find("a/64") == std::string::npos);
  }
}

TEST_SUITE("recovery_core: nodes that go and come") {
  TEST_CASE("a lost node costs nothing") {
    auto s = two_nodes(0);
    CHECK(s.is_lost("b") == "instruct Reform g1, restart 0: node b is lost");
  }

  TEST_CASE(
      "what fails while a node is away waits; if the node is lost it was the cause, for free") {
    auto s = two_nodes(0);
    CHECK(s.goes_away("b") == "");
    CHECK(s.fails("a", 1) == "");
    CHECK(s.core.in_words() == "generation 1 failed; waiting for 1 node(s) that are away");
    CHECK(s.is_lost("b") == "instruct Reform g1, restart 0: node b is lost");
  }

  TEST_CASE("if it returns unharmed the failure stands on its own") {
    auto s = two_nodes(1);
    s.goes_away("b");
    s.fails("a", 1);
    CHECK(s.returns("b", running_in(1)) ==
          lines("record RestartCharged g1 to a, restart 1 [a/0: exit code 1]",
                "instruct Reform g1, restart 1: " + cause));
  }

  TEST_CASE("with several away all must be back, or one be lost") {
    story s(1);
    s.begins(1, {"a", "b", "c"});
    s.goes_away("b");
    s.goes_away("c");
    s.fails("a", 1);
    CHECK(s.returns("b", running_in(1)) == "");
    CHECK(s.is_lost("c") == "instruct Reform g1, restart 0: node c is lost");
  }

  TEST_CASE("an absence that ends well is nobody's business") {
    auto s = two_nodes(0);
    s.goes_away("b");
    CHECK(s.returns("b", running_in(1)) == "");
    CHECK(s.returns("b", ready_for(1)) == "");
    CHECK(s.core.current_phase() == phase::watching);
  }

  TEST_CASE("a node that returns with a failure reports it so") {
    auto s = two_nodes(1);
    s.goes_away("b");
    CHECK(s.returns("b", failed_in(1, {3}))
              .find("record RestartCharged g1 to b, restart 1 [b/0: exit code 3]") == 0);
  }

  TEST_CASE("a node whose supervisor has lost its workers is a failure, and named once") {
    auto s = two_nodes(1);
    s.goes_away("a");
    s.goes_away("b");
    CHECK(s.returns("b", nothing()) == "");
    s.goes_away("b");
    CHECK(s.returns("b", nothing()) == "");
    CHECK(
        s.returns("a", running_in(1)) ==
        lines("record RestartCharged g1 to b, restart 1 [b: the node supervisor lost its workers]",
              "instruct Reform g1, restart 1: node b: the node supervisor lost its workers"));
  }

  TEST_CASE("a node that was told to end this very generation has not failed") {
    // By a master that fell before it could form the next one.
    auto s = two_nodes(0);
    CHECK(s.returns("b", draining(1)) ==
          "instruct Reform g1, restart 0: node b has ended generation 1 already");
    auto t = two_nodes(0);
    CHECK(t.returns("b", idle_after(1)).find("instruct Reform g1, restart 0") == 0);
  }

  TEST_CASE("who was away when the world was sealed is waited for as well") {
    auto s = two_nodes(1);
    s.goes_away("b");
    CHECK(s.fails("a", 1) == "");
    CHECK(s.returns("b", ready_for(1)).find("record RestartCharged g1") == 0);
  }

  TEST_CASE("absences of an older generation are forgotten with it") {
    auto s = two_nodes(2);
    s.goes_away("b");
    s.is_lost("b");
    s.begins(2, {"a", "c"});
    CHECK(s.fails("a", 2).find("record RestartCharged g2") == 0);
  }
}

TEST_SUITE("recovery_core: success") {
  TEST_CASE("the job has finished when every node has, and that is said once") {
    auto s = two_nodes(0);
    CHECK(s.finishes("a", 1) == "");
    CHECK(s.finishes("a", 1) == "");
    CHECK(s.core.in_words() ==
          "watching generation 1: 1 of 2 nodes finished, 0 restarts used, 0 for each node");
    CHECK(s.finishes("b", 1) == lines("record Concluded success: every worker finished",
                                      "instruct Conclude success: every worker finished",
                                      "verdict success: every worker finished"));
    CHECK(s.finishes("b", 1) == "");
    CHECK(s.fails("a", 1) == "");
    CHECK(s.is_lost("a") == "");
  }

  TEST_CASE("only members of this generation count") {
    auto s = two_nodes(0);
    s.finishes("a", 1);
    CHECK(s.finishes("stranger", 1) == "");
    CHECK(s.finishes("b", 0) == "");
    CHECK(s.core.current_phase() == phase::watching);
  }

  TEST_CASE("a node may say in its hello that it has finished") {
    auto s = two_nodes(0);
    s.finishes("a", 1);
    s.goes_away("b");
    CHECK(s.returns("b", finished_in(1)).find("record Concluded success") == 0);
  }

  TEST_CASE("a finished node that is lost has done its part") {
    auto s = two_nodes(0);
    s.finishes("a", 1);
    CHECK(s.is_lost("a") == "");
    CHECK(s.finishes("b", 1).find("record Concluded success") == 0);
  }

  TEST_CASE("a finished node that comes back as another has still done its part") {
    auto s = two_nodes(0);
    s.finishes("a", 1);
    s.is_lost("a");
    CHECK(s.returns("a", nothing()) == "");
    CHECK(s.finishes("b", 1).find("record Concluded success") == 0);
  }

  TEST_CASE("for a finished node nobody waits before a failure is judged") {
    auto s = two_nodes(1);
    s.finishes("a", 1);
    s.goes_away("a");
    CHECK(s.fails("b", 1).find("record RestartCharged g1 to b, restart 1") == 0);
  }

  TEST_CASE("having finished in one generation does not count in the next") {
    auto s = two_nodes(1);
    s.finishes("a", 1);
    s.fails("b", 1);
    s.begins(2, {"a", "b"}, 1);
    CHECK(s.finishes("b", 2) == "");
    CHECK(s.finishes("a", 2).find("record Concluded success") == 0);
  }
}

TEST_SUITE("recovery_core: other ends") {
  TEST_CASE("what cannot be formed is the verdict") {
    story s(3);
    CHECK(text(s.core.unformable(s.now, unformable("too few"))) ==
          lines("record Concluded failure: too few", "instruct Conclude failure: too few",
                "verdict failure: too few"));
    CHECK(text(s.core.unformable(s.now, unformable("too few"))) == "");
  }

  TEST_CASE("the user's wish ends the job, once, and not after its verdict") {
    auto s = two_nodes(3);
    CHECK(text(s.core.abandon("interrupted")).find("record Concluded failure: interrupted") == 0);
    CHECK(text(s.core.abandon("interrupted")) == "");
    CHECK(s.begins(2) == "");
    CHECK(s.core.current_phase() == phase::concluded);
  }
}

TEST_SUITE("recovery_core: recall") {
  TEST_CASE("a sealed generation is watched on; who has not come back yet counts as away") {
    story s(2, {proposed_record(3), sealed_record(3, {"a", "b"}, 1)});
    CHECK(s.recalled == "");
    CHECK(s.returns("a", failed_in(3)) == "");
    CHECK(s.returns("b", running_in(3)).find("record RestartCharged g3 to a, restart 2") == 0);
  }

  TEST_CASE("the budget is remembered") {
    story s(1, {sealed_record(1, {"a"}), charged_record(1, 1), sealed_record(2, {"a"}, 1)});
    CHECK(s.returns("a", failed_in(2)).find("record Concluded failure") == 0);
  }

  TEST_CASE("a proposal nobody sealed: nothing runs") {
    story s(1, {sealed_record(1, {"a"}), proposed_record(2)});
    CHECK(s.core.current_phase() == phase::waiting);
    CHECK(s.returns("a", running_in(1)) == "");
  }

  TEST_CASE("a restart that was charged and perhaps never asked for is asked for again") {
    story s(1, {sealed_record(1, {"a"}), charged_record(1, 1)});
    CHECK(s.recalled ==
          "instruct Reform g1, restart 1: a failure that an earlier master has charged already");
    CHECK(s.core.current_phase() == phase::reforming);
  }

  TEST_CASE("a verdict that was recorded and perhaps never told is told again") {
    story s(1, {sealed_record(1, {"a"}), concluded_record(true)});
    CHECK(s.recalled ==
          lines("instruct Conclude success: as recorded", "verdict success: as recorded"));
    CHECK(s.finishes("a", 1) == "");
    CHECK(text(s.core.abandon("interrupted")) == "");
  }
}

TEST_SUITE("recovery_core: what people read") {
  TEST_CASE("how long the start took, once all nodes have started") {
    auto s = two_nodes(1);
    s.now += 20ms;
    CHECK(s.starts("a", 1) == "");
    CHECK(s.starts("a", 0) == "");
    CHECK(s.starts("b", 1) == "all workers are started (20.0 ms after sealing)");
  }

  TEST_CASE("how long training stood still, from the failure on") {
    auto s = two_nodes(1);
    s.fails("a", 1);
    s.now += 15ms;
    s.begins(2, {"a", "b"}, 1);
    s.now += 5ms;
    s.starts("a", 2);
    CHECK(s.starts("b", 2) ==
          "training runs again, 20.0 ms after the failure (forming the generation took 15.0 ms, "
          "starting the workers 5.0 ms)");
  }

  TEST_CASE("a start may also become known by a node's return") {
    auto s = two_nodes(1);
    s.starts("a", 1);
    s.goes_away("b");
    CHECK(notes(s.core.node_present(s.now, present("b", running_in(1)))) ==
          "all workers are started (0 µs after sealing)");
    CHECK(s.starts("b", 1) == "");
  }

  TEST_CASE("what it costs") {
    auto s = two_nodes(2);
    CHECK(notes(s.core.failed(s.now, failed("a", 1))) ==
          cause + "; the group starts again (restart 1 of 2 of node a)");
    auto t = two_nodes(2);
    CHECK(notes(t.core.node_lost(t.now, lost("a"))) ==
          "node a is lost; the group starts again (free of charge)");
  }
}
