#include "actors/master/gateway/one_tree.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors::gateway;

namespace {

sup::node_report row(std::string name, std::vector<sup::node_report> below = {}) {
  sup::node_report r;
  r.name = std::move(name);
  r.state = "running";
  r.children = std::move(below);
  return r;
}

node_part part(const node_name& node, std::uint64_t session, std::size_t rows) {
  return {node,
          session_id{session},
          row("node_supervisor", std::vector<sup::node_report>(rows, row("rank"))),
          {}};
}

/// Names and reasons, nested.
std::string text(const sup::node_report& r) {
  std::string out = r.name + (r.state == "silent" ? ": " + r.phase : "");
  if (r.children.empty())
    return out;
  out += "(";
  for (const auto& child : r.children)
    out += (out.back() == '(' ? "" : ", ") + text(child);
  return out + ")";
}

} // namespace

TEST_SUITE("gateway: one tree") {
  TEST_CASE(
      "rows of sessions are named after their nodes; an ended one of that name is not meant") {
    auto old = row("session 1");
    old.state = "ended";
    const auto master =
        row("master", {row("job"), row("sessions", {old, row("session 1"), row("session 2")})});
    CHECK(
        text(one_tree(master, {part("a", 1, 1), {"c", std::nullopt, std::nullopt, "gone"}})) ==
        "master(job, sessions(session 1, a(node_supervisor(rank)), session 2, c: no link: gone))");
  }

  TEST_CASE("a session that has ended meanwhile, a master without sessions: the node is there") {
    CHECK(text(one_tree(row("master", {row("sessions")}), {part("a", 1, 1)})) ==
          "master(sessions(a: its session has just ended(node_supervisor(rank))))");
    CHECK(text(one_tree(row("master"), {part("a", 1, 0)})) ==
          "master(sessions: not among the master's children(a: its session has just ended("
          "node_supervisor)))");
  }

  TEST_CASE("trees that do not fit are left out, by row") {
    const auto master = row("master", {row("sessions", {row("session 1"), row("session 2")})});
    CHECK(text(one_tree(master, {part("a", 1, 100), part("b", 2, 1)}, 8'000)) ==
          "master(sessions(a(node_supervisor: left out: the answer would be too large (--node "
          "shows this node alone)), b(node_supervisor(rank))))");
  }

  TEST_CASE("a master whose own rows do not fit: lists are cut, and say by how many") {
    const auto master =
        row("master", {row("sessions", std::vector<sup::node_report>(100'000, row("session 9")))});
    const auto tree = one_tree(master, {});
    CHECK(size_at_most(tree) <= limits::tree_bytes_max);
    const auto& rows = tree.children.at(0).children;
    CHECK(rows.size() == 16'385);
    CHECK(text(rows.back()) == "…: 83616 more are left out: the answer would be too large");
  }
}
