#include "runtime/sup/report.hpp"

#include <fmt/format.h>

namespace troupe::sup {

namespace {

void text_into(std::string& out, const node_report& r, unsigned depth) {
  out += fmt::format("{:{}}{} ({}) {}", "", depth * 2, r.name, r.kind, r.phase);
  out += fmt::format(", up {}, {} restarts", in_words(r.uptime), r.restarts);
  if (r.restarts_left >= 0)
    out += fmt::format(", {} left", r.restarts_left);
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
