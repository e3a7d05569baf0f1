#include "launch/shell/tree_filter.hpp"

#include "launch/shell/testing/job_tree.hpp"
#include "runtime/base/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

namespace {

/// Names, nested.
std::string names(const std::optional<sup::node_report>& r) {
  if (!r)
    return "nothing";
  std::string out = r->name;
  for (const auto& child : r->children)
    out += (&child == &r->children.front() ? "(" : ", ") + names(child);
  return out + (r->children.empty() ? "" : ")");
}

} // namespace

TEST_CASE("filter: which rows are in trouble") {
  struct row {
    tree_row of;
    mood how;
  };
  auto crowded = tree_row("a", 1s);
  crowded.mailbox = limits::credit_messages;
  auto unexpected = tree_row("a", 1s);
  unexpected.unexpected = 1;
  for (const row& r :
       {row{tree_row("a", 1s), mood::calm}, row{tree_row("a", 1s).in("starting"), mood::calm},
        row{tree_row("a", 1s).in("stopping"), mood::alert},
        row{tree_row("a", 1s).in("down"), mood::bad},
        row{tree_row("a", 1s).in("silent"), mood::bad},
        row{tree_row("a", 1s).in("ended").ended(1s), mood::over},
        row{tree_row("a", 1s).in("ended").ended(1s, "x"), mood::bad},
        row{tree_row("a", 1s).ended(1s, "x"), mood::alert},
        row{tree_row("a", 1s).ended(2 * limits::ended_shown_for, "x"), mood::calm},
        row{tree_row("a", 1s).ended(1s), mood::calm},
        row{tree_row("a", 1s).budget(0, 0), mood::calm},
        row{tree_row("a", 1s).budget(2, 3), mood::calm},
        row{tree_row("a", 1s).budget(0, 3).budget(3, 3, "n"), mood::alert},
        row{crowded, mood::alert}, row{unexpected, mood::alert}})
    CHECK_MESSAGE(mood_of(r.of) == r.how, r.of.state);
}

TEST_CASE("filter: only what is troubled, and those above it") {
  CHECK(names(filtered(job_after_a_kill(), {{}, {}, true})) ==
        "master(job(generation 7), sessions(node-0(node_supervisor), "
        "node-1(node_supervisor(worker_group(generation 7), uplink))))");
  CHECK(names(filtered(tree_row("master", 1s).above({tree_row("gateway", 1s)}), {{}, {}, true})) ==
        "nothing");
}

TEST_CASE("filter: one node, wherever its name stands, with the restarts that count against it") {
  const auto seen = filtered(job_after_a_kill(), {"node-1", {}, false});
  CHECK(names(seen) == "master(job(generation 8(member node-1)), "
                       "sessions(node-1(node_supervisor(worker_group(generation 7, generation 8("
                       "rank 2, rank 3)), uplink))))");
  REQUIRE(seen->children.at(0).budgets.size() == 2);
  CHECK(seen->children.at(0).budgets.at(1).of == "node-1");
  CHECK(names(filtered(job_after_a_kill(), {"node-11", {}, false})) == "nothing");
  CHECK(names(filtered(job_after_a_kill(), {"1", {}, false})) == "nothing");
}

TEST_CASE("filter: levels below the master; what is cut is counted") {
  const auto seen = filtered(job_after_a_kill(), {{}, 1, false});
  CHECK(names(seen) == "master(job, sessions, gateway)");
  CHECK(seen->children.at(0).phase ==
        "generation 8 runs on 2 nodes (4 rows below, 1 of them troubled)");
  CHECK(seen->children.at(2).phase == "listening on 127.0.0.1:29400");
  CHECK(names(filtered(job_after_a_kill(), {{}, 0, false})) == "master");
  CHECK(names(filtered(job_after_a_kill(), {{}, 20, false})) ==
        names(filtered(job_after_a_kill(), {})));
}

TEST_CASE("filter: rows and trouble are counted") {
  const auto all = count(job_after_a_kill());
  CHECK(all.rows == 20);
  CHECK(all.troubled == 4);
}
