#include "actors/tree_report.hpp"
#include "tests/actors/master_stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// A job of two nodes that runs, and a shell.
struct asked_job : master_stage {
  explicit asked_job(std::uint32_t trees_max = limits::tree_nodes_asked_max) : master_stage(2) {
    options.gateway.node_trees_max = trees_max;
    begin();
    join("a");
    join("b");
    run_two();
    shell = transport->knock(
        hello("shell", 1, [](auto b) { b.setRole(messages::Hello::Role::SHELL); }));
    settle();
    shell->take_sent();
  }

  void asks(const node_name& only = {}) {
    const auto question = messages::author("shell").write<messages::TreeRequest>(
        {}, [&only](auto b) { b.setNode(only); });
    shell->arrives(messages::with_correlation(question, 7).any());
    settle();
  }

  /// The node was asked and answers with a tree of so many levels.
  void answers(const node_name& node, unsigned levels = 1) {
    const auto asked = links.at(node)->take_sent();
    REQUIRE(asked.size() == 1);
    REQUIRE(asked[0].is<messages::TreeRequest>());
    sup::node_report tree{"node_supervisor", "one_for_one", "running"};
    for (auto* last = &tree; --levels > 0; last = &last->children.back())
      last->children.push_back({"below", "worker", "running", "works"});
    says(node, messages::author("node")
                   .answer<messages::TreeReport>(
                       asked[0].envelope(), [&](auto b) { write_tree(tree, b.initRoots(1)[0]); })
                   .any());
  }

  /// What the shell was answered.
  sup::node_report shown() {
    const auto heard = shell->take_sent();
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].envelope().correlation == 7);
    auto report = heard[0].as<messages::TreeReport>().read();
    REQUIRE(report->getRoots().size() == 1);
    return *read_tree(report->getRoots()[0], 16);
  }

  troupe::testing::fake_link_ptr shell;
};

const sup::node_report& row(const sup::node_report& above, const std::string& name) {
  const auto found = std::find_if(above.children.begin(), above.children.end(),
                                  [&](const auto& r) { return r.name == name; });
  if (found == above.children.end())
    FAIL("no row '" << name << "' in\n" << sup::to_text(above));
  return *found;
}

const sup::node_report& node_row(const sup::node_report& master, const std::string& name) {
  return row(row(master, "sessions"), name);
}

std::string told(const sup::node_report& r) {
  return r.name + " (" + r.kind + ") " + r.state + ": " + r.phase;
}

} // namespace

TEST_SUITE("master: questions") {
  TEST_CASE("each node's tree hangs below the row of its session, which has the node's name") {
    asked_job s;
    s.asks();
    s.answers("b", 3);
    CHECK(heard(*s.shell) == "");
    s.answers("a");
    const auto tree = s.shown();
    CHECK(tree.name == "master");
    CHECK(tree.children.size() == 10);
    CHECK(node_row(tree, "a").kind == "worker");
    CHECK(node_row(tree, "a").children.at(0).name == "node_supervisor");
    CHECK(told(row(row(row(node_row(tree, "b"), "node_supervisor"), "below"), "below")) ==
          "below (worker) running: works");
    CHECK(told(row(row(tree, "sessions"), "session 3")).find("shell shell") != std::string::npos);
  }

  TEST_CASE("a node whose link ends while it is asked is shown at once") {
    asked_job s;
    s.asks();
    s.answers("a");
    s.links.at("b")->breaks();
    s.settle();
    CHECK(told(node_row(s.shown(), "b").children.at(0)) ==
          "node_supervisor (unknown) silent: the link to the node is gone");
  }

  TEST_CASE("a node that does not answer is shown as silent, in time") {
    asked_job s;
    s.asks();
    s.answers("a");
    s.pass(limits::tree_node_within);
    CHECK(told(node_row(s.shown(), "b").children.at(0)) ==
          "node_supervisor (unknown) silent: did not answer within 2.0 s");
  }

  TEST_CASE("a node without a session has a row of its own, with the reason") {
    asked_job s;
    s.links.at("b")->breaks();
    s.settle();
    s.asks();
    s.answers("a");
    const auto tree = s.shown();
    CHECK(node_row(tree, "b").state == "silent");
    CHECK(node_row(tree, "b").phase.find("no link: ") == 0);
    CHECK(node_row(tree, "b").children.empty());
  }

  TEST_CASE("nodes beyond the limit are not asked, and their rows say so") {
    asked_job s(1);
    s.asks();
    s.answers("a");
    CHECK(s.hears("b") == "");
    CHECK(told(node_row(s.shown(), "b").children.at(0)) ==
          "node_supervisor (unknown) silent: not asked: one answer shows 1 nodes (--node shows "
          "this node alone)");
  }

  TEST_CASE("a question about one node asks no other, and the limit does not count for it") {
    asked_job s(1);
    s.asks("b");
    s.answers("b");
    CHECK(s.hears("a") == "");
    const auto tree = s.shown();
    CHECK(node_row(tree, "a").children.empty());
    CHECK(node_row(tree, "b").children.at(0).name == "node_supervisor");
  }

  TEST_CASE("a node's answer that is too deep to hang below its session is left out") {
    asked_job s;
    s.asks();
    s.answers("a", limits::tree_node_levels_max);
    s.answers("b", limits::tree_node_levels_max + 1);
    const auto tree = s.shown();
    CHECK(node_row(tree, "a").children.at(0).name == "node_supervisor");
    CHECK(told(node_row(tree, "b").children.at(0)) ==
          "node_supervisor (unknown) silent: its answer is empty, or has more than 8 levels");
  }

  TEST_CASE("too many questions to one node are refused at once") {
    asked_job s;
    const auto session = s.session_of("a");
    const auto question = messages::author("x").write<messages::TreeRequest>({}, [](auto) {});
    for (std::size_t i = 0; i < limits::open_questions_max; ++i)
      s.ask<messages::msg<messages::TreeReport>>(session, question);
    CHECK(s.refusal == "");
    s.ask<messages::msg<messages::TreeReport>>(session, question);
    CHECK(s.refusal == "too many questions are open with this peer");
    // What the node has not answered by then it never will.
    s.pass(limits::request_within);
    s.refusal.clear();
    s.ask<messages::msg<messages::TreeReport>>(session, question);
    CHECK(s.refusal == "");
  }

  TEST_CASE("what a shell may not ask does nothing") {
    asked_job s;
    s.shell->arrives(failed("a", 1).any());
    s.settle();
    CHECK(heard(*s.shell) == "");
    CHECK(s.hears("a") == "");
  }

  TEST_CASE("a shell that may only look scales nothing, and its link is closed for asking") {
    for (const bool may_change : {false, true}) {
      asked_job s;
      const auto shell = s.transport->knock(hello("shell", 2, [may_change](auto b) {
        b.setRole(messages::Hello::Role::SHELL);
        b.setChangesJob(may_change);
      }));
      s.settle();
      shell->take_sent();
      const auto wish = messages::author("shell").write<messages::ScaleRequest>({}, [](auto b) {
        b.setNodesMin(1);
        b.setNodesMax(2);
      });
      shell->arrives(messages::with_correlation(wish, 9).any());
      s.settle();
      const auto heard = shell->take_sent();
      CHECK(heard.size() == (may_change ? 1 : 0));
      CHECK(shell->ended().has_value() == !may_change);
    }
  }
}
