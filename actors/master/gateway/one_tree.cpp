#include "actors/master/gateway/one_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::actors::gateway {

namespace {

constexpr std::size_t word = 8;
/// A row's numbers and pointers, the end before, and the tag of its list of children, in words.
constexpr std::size_t row_words = 24;
constexpr std::size_t budget_words = 3;

std::size_t size_of(const std::string& text) {
  return (text.size() / word + 1) * word;
}

sup::node_report unknown(std::string name, std::string why) {
  sup::node_report row;
  row.name = std::move(name);
  row.kind = "unknown";
  row.state = "silent";
  row.phase = std::move(why);
  return row;
}

/// The row whose children are the sessions. A master whose tree is unknown gets one for the nodes.
sup::node_report& sessions_of(sup::node_report& master) {
  const auto found = std::find_if(master.children.begin(), master.children.end(),
                                  [](const sup::node_report& r) { return r.name == "sessions"; });
  if (found != master.children.end())
    return *found;
  master.children.push_back(unknown("sessions", "not among the master's children"));
  return master.children.back();
}

/// The same row, named after its node; a new one for a node that has none there.
sup::node_report& row_of(sup::node_report& sessions,
                         const std::map<std::string, std::size_t>& by_name, const node_part& part) {
  const auto found = part.session ? by_name.find(session_name(*part.session)) : by_name.end();
  if (found == by_name.end()) {
    sessions.children.push_back(
        unknown(part.node, part.session ? "its session has just ended" : "no link: " + part.why));
    return sessions.children.back();
  }
  auto& row = sessions.children[found->second];
  row.name = part.node;
  return row;
}

/// No list of children is longer than `most`; what is cut is counted in a last row.
void cut_lists(sup::node_report& r, std::size_t most) {
  if (r.children.size() > most) {
    const auto left_out = r.children.size() - most;
    r.children.resize(most);
    r.children.push_back(
        unknown("…", fmt::format("{} more are left out: the answer would be too large", left_out)));
  }
  for (auto& child : r.children)
    cut_lists(child, most);
}

} // namespace

std::string session_name(session_id id) {
  return fmt::format("session {}", id.value);
}

std::size_t size_at_most(const sup::node_report& r) {
  auto size =
      row_words * word + size_of(r.name) + size_of(r.kind) + size_of(r.state) + size_of(r.phase);
  if (r.last_end)
    size += size_of(r.last_end->reason());
  for (const auto& budget : r.budgets)
    size += budget_words * word + size_of(budget.of);
  for (const auto& child : r.children)
    size += size_at_most(child);
  return size;
}

sup::node_report one_tree(sup::node_report master, std::vector<node_part> nodes,
                          std::size_t bytes_max) {
  auto& sessions = sessions_of(master);
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < sessions.children.size(); ++i)
    if (sessions.children[i].state != "ended")
      by_name.emplace(sessions.children[i].name, i);
  // Each part costs at least one row, for its reason.
  auto size =
      size_at_most(master) + nodes.size() * 2 * size_at_most(unknown("", std::string(200, ' ')));
  for (auto& part : nodes) {
    auto& row = row_of(sessions, by_name, part);
    if (!part.session || (!part.tree && part.why.empty()))
      continue;
    const auto more = part.tree ? size_at_most(*part.tree) : 0;
    if (size + more > bytes_max) {
      part.tree.reset();
      part.why = "left out: the answer would be too large (--node shows this node alone)";
    } else {
      size += more;
    }
    row.children.push_back(part.tree ? std::move(*part.tree)
                                     : unknown("node_supervisor", std::move(part.why)));
  }
  // Each try cuts the whole tree, so that the counts in the last rows are right.
  for (auto most = limits::children_max; size_at_most(master) > bytes_max && most > 1; most /= 2) {
    auto less = master;
    cut_lists(less, most);
    if (size_at_most(less) <= bytes_max)
      return less;
  }
  return master;
}

} // namespace troupe::actors::gateway
