#include "launch/shell/tree_filter.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::launch {

namespace {

/// So many messages wait that the actor cannot be keeping up.
constexpr std::size_t crowded_mailbox = limits::credit_messages / 2;

bool recent(const sup::past_end& end) {
  return end.ago <= limits::ended_shown_for;
}

/// A budget of none is no sign of trouble: a job without restarts has it from the start.
bool used_up(const sup::budget_use& b) {
  return b.used > 0 && b.used >= b.allowed;
}

/// "node-1", "member node-1": the last word is the node.
bool names(const std::string& row, const std::string& node) {
  return row == node || (row.size() > node.size() && row[row.size() - node.size() - 1] == ' ' &&
                         row.compare(row.size() - node.size(), node.size(), node) == 0);
}

using rows = std::vector<sup::node_report>;

/// Leaves the children that the filter leaves something of.
template<class Filter>
void keep_children(rows& children, const Filter& filter) {
  children.erase(std::remove_if(children.begin(), children.end(),
                                [&filter](sup::node_report& r) { return !filter(r); }),
                 children.end());
}

bool leave_node(sup::node_report& r, const std::string& node) {
  if (names(r.name, node))
    return true;
  keep_children(r.children, [&node](sup::node_report& child) { return leave_node(child, node); });
  auto& budgets = r.budgets;
  budgets.erase(std::remove_if(budgets.begin(), budgets.end(),
                               [&node](const auto& b) { return !b.of.empty() && b.of != node; }),
                budgets.end());
  const bool counts =
      std::any_of(budgets.begin(), budgets.end(), [&node](const auto& b) { return b.of == node; });
  return counts || !r.children.empty();
}

bool leave_troubled(sup::node_report& r) {
  keep_children(r.children, leave_troubled);
  const auto mood = mood_of(r);
  return mood == mood::bad || mood == mood::alert || !r.children.empty();
}

void add(tree_count& to, const tree_count& more) {
  to.rows += more.rows;
  to.troubled += more.troubled;
}

void cut_below(sup::node_report& r, unsigned levels) {
  if (levels > 0) {
    for (auto& child : r.children)
      cut_below(child, levels - 1);
    return;
  }
  tree_count below;
  for (const auto& child : r.children)
    add(below, count(child));
  r.children.clear();
  if (below.rows == 0)
    return;
  const auto troubled =
      below.troubled == 0 ? std::string() : fmt::format(", {} of them troubled", below.troubled);
  r.phase += fmt::format("{}({} row{} below{})", r.phase.empty() ? "" : " ", below.rows,
                         below.rows == 1 ? "" : "s", troubled);
}

} // namespace

mood mood_of(const sup::node_report& r) {
  // A child that is not started again is down once it has ended.
  if (r.state == "ended" || r.state == "down")
    return r.last_end && !r.last_end->why ? mood::over : mood::bad;
  if (r.state == "silent")
    return mood::bad;
  const bool budget = std::any_of(r.budgets.begin(), r.budgets.end(), used_up);
  const bool ended = r.last_end && r.last_end->why && recent(*r.last_end);
  const bool stops = r.state == "stopping";
  if (budget || ended || stops || r.mailbox >= crowded_mailbox || r.unexpected > 0)
    return mood::alert;
  return mood::calm;
}

std::optional<sup::node_report> filtered(sup::node_report r, const tree_filter& f) {
  if (!f.node.empty() && !leave_node(r, f.node))
    return std::nullopt;
  if (f.troubled && !leave_troubled(r))
    return std::nullopt;
  if (f.depth)
    cut_below(r, *f.depth);
  return r;
}

tree_count count(const sup::node_report& r) {
  const auto mood = mood_of(r);
  tree_count all{1, mood == mood::bad || mood == mood::alert ? 1u : 0u};
  for (const auto& child : r.children)
    add(all, count(child));
  return all;
}

} // namespace troupe::launch
