#include "launch/tree_text.hpp"

#include "runtime/base/time.hpp"
#include "runtime/os/log/printable.hpp"

#include <fmt/format.h>

namespace troupe::launch {

namespace {

void write(std::string& out, messages::TreeNode::Reader node, const std::string& indent,
           const std::string& branch) {
  std::string line = fmt::format("{}{}{}", indent, branch, os::printable(node.getName().cStr()));
  const std::string kind = node.getKind().cStr();
  if (kind != "worker")
    line += fmt::format("  [{}]", os::printable(kind));
  std::string facts = os::printable(node.getPhase().cStr());
  const auto add = [&facts](const std::string& fact) {
    facts += (facts.empty() ? "" : ", ") + fact;
  };
  if (node.getUptimeMs() > 0)
    add("up " + in_words(std::chrono::milliseconds(node.getUptimeMs())));
  if (node.getRestarts() > 0)
    add(fmt::format("restarted {} time{}", node.getRestarts(), node.getRestarts() == 1 ? "" : "s"));
  if (node.getRestartsLeft() == 0)
    add("no restart left");
  out += fmt::format("{:<52} {}\n", line, facts);
  const auto children = node.getChildren();
  const auto below = branch.empty() ? indent : indent + (branch == "└─ " ? "   " : "│  ");
  for (unsigned i = 0; i < children.size(); ++i)
    write(out, children[i], below, i + 1 == children.size() ? "└─ " : "├─ ");
}

} // namespace

std::string tree_text(const messages::msg<messages::TreeReport>& report) {
  std::string out;
  auto answer = report.read();
  for (auto root : answer->getRoots())
    write(out, root, "", "");
  return out;
}

} // namespace troupe::launch
