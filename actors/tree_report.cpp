#include "actors/tree_report.hpp"

namespace troupe::actors {

void write_tree(const sup::node_report& from, messages::TreeNode::Builder to) {
  to.setName(from.name);
  to.setKind(from.kind);
  to.setPhase(from.phase);
  to.setUptimeMs(static_cast<std::uint64_t>(milliseconds_of(from.uptime)));
  to.setRestarts(from.restarts);
  to.setRestartsLeft(from.restarts_left);
  auto children = to.initChildren(static_cast<unsigned>(from.children.size()));
  for (unsigned i = 0; i < from.children.size(); ++i)
    write_tree(from.children[i], children[i]);
}

} // namespace troupe::actors
