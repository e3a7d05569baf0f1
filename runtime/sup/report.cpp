#include "runtime/sup/report.hpp"

#include <fmt/format.h>

namespace troupe::sup {

namespace {

void text_into(std::string& out, const node_report& r, unsigned depth) {
  out += fmt::format("{:{}}{} ({}) {}", "", depth * 2, r.name, r.kind, r.state);
  if (!r.phase.empty())
    out += ": " + r.phase;
  out += fmt::format(", up {}, {} restarts", in_words(r.uptime), r.restarts);
  for (const auto& b : r.budgets)
    out += fmt::format(", {} of {} used{}{}", b.used, b.allowed, b.of.empty() ? "" : " by ", b.of);
  if (r.mailbox > 0)
    out += fmt::format(", {} messages wait", r.mailbox);
  if (r.last_end)
    out += fmt::format(", ended {} ago{}{}", in_words(r.last_end->ago),
                       r.last_end->reason().empty() ? "" : ": ", r.last_end->reason());
  if (r.unexpected > 0)
    out += fmt::format(", {} unexpected messages", r.unexpected);
  out += '\n';
  for (const auto& child : r.children)
    text_into(out, child, depth + 1);
}

} // namespace

std::string to_text(const node_report& r) {
  std::string out;
  text_into(out, r, 0);
  return out;
}

} // namespace troupe::sup
