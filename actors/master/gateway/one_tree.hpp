#pragma once

#include "actors/limits.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/sup/report.hpp"

#include <optional>
#include <string>
#include <vector>

/// Master and nodes are trees of different processes. A person asks about one job: each node's tree
/// hangs below the row of its session at the master, so that the path master, sessions, node,
/// node_supervisor leads to each training process. A part that is missing is a row that says why.
namespace troupe::actors::gateway {

/// The session's name as a child of `sessions`.
std::string session_name(session_id id);

/// What is known of one node when the tree is put together.
struct node_part {
  node_name node;
  /// Nothing: the node has no link.
  std::optional<session_id> session;
  std::optional<sup::node_report> tree;
  /// Why there is no tree, or no link. Empty beside a session: this node was not asked for.
  std::string why;
};

/// Nodes whose trees no longer fit into `bytes_max` are left out, and their rows say so. Where the
/// master's own rows do not fit either, each list of children is cut, and its last row says so.
sup::node_report one_tree(sup::node_report master, std::vector<node_part> nodes,
                          std::size_t bytes_max = limits::tree_bytes_max);

/// No fewer bytes than the report takes in a message.
std::size_t size_at_most(const sup::node_report& r);

} // namespace troupe::actors::gateway
