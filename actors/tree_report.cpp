#include "actors/tree_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::actors {

void write_tree(const sup::node_report& from, messages::TreeNode::Builder to) {
  to.setName(from.name);
  to.setKind(from.kind);
  to.setPhase(from.phase);
  to.setUptimeMs(static_cast<std::uint64_t>(milliseconds_of(from.uptime)));
  to.setRestarts(from.restarts);
  to.setState(from.state);
  to.setMailbox(static_cast<std::uint32_t>(from.mailbox));
  to.setUnexpected(from.unexpected);
  auto budgets = to.initBudgets(static_cast<unsigned>(from.budgets.size()));
  for (unsigned i = 0; i < from.budgets.size(); ++i) {
    budgets[i].setOf(from.budgets[i].of);
    budgets[i].setUsed(from.budgets[i].used);
    budgets[i].setAllowed(from.budgets[i].allowed);
  }
  if (!from.budgets.empty() && from.budgets.front().of.empty())
    to.setRestartsLeft(
        static_cast<std::int32_t>(from.budgets.front().allowed - from.budgets.front().used));
  if (from.last_end) {
    auto end = to.initLastEnd();
    end.setAgoMs(static_cast<std::uint64_t>(milliseconds_of(from.last_end->ago)));
    end.setBad(from.last_end->why.has_value());
    end.setWhy(from.last_end->reason());
  }
  auto children = to.initChildren(static_cast<unsigned>(from.children.size()));
  for (unsigned i = 0; i < from.children.size(); ++i)
    write_tree(from.children[i], children[i]);
}

namespace {

/// Another process says how long; a clock of ours cannot hold every number.
duration milliseconds_said(std::uint64_t said) {
  constexpr std::uint64_t century = 100ull * 366 * 24 * 3'600'000;
  return std::chrono::milliseconds(std::min(said, century));
}

sup::node_report read_row(messages::TreeNode::Reader from) {
  sup::node_report to;
  to.name = from.getName().cStr();
  to.kind = from.getKind().cStr();
  to.state = from.getState().cStr();
  to.phase = from.getPhase().cStr();
  to.uptime = milliseconds_said(from.getUptimeMs());
  to.mailbox = from.getMailbox();
  to.restarts = from.getRestarts();
  to.unexpected = from.getUnexpected();
  for (const auto budget : from.getBudgets())
    to.budgets.push_back({budget.getOf().cStr(), budget.getUsed(), budget.getAllowed()});
  if (from.hasLastEnd()) {
    const auto end = from.getLastEnd();
    sup::past_end past{milliseconds_said(end.getAgoMs()), {}, {}};
    if (end.getBad())
      past.why = end.getWhy().cStr();
    else
      past.asked = end.getWhy().cStr();
    to.last_end = std::move(past);
  }
  return to;
}

} // namespace

std::optional<sup::node_report> read_tree(messages::TreeNode::Reader from, unsigned levels_max) {
  if (levels_max == 0)
    return std::nullopt;
  auto to = read_row(from);
  for (const auto child : from.getChildren()) {
    auto below = read_tree(child, levels_max - 1);
    if (!below)
      return std::nullopt;
    to.children.push_back(std::move(*below));
  }
  return to;
}

} // namespace troupe::actors
