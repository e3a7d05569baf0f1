#pragma once

#include "messages/shell.capnp.h"
#include "runtime/sup/report.hpp"

#include <optional>

namespace troupe::actors {

/// A supervisor's report as a message of the shell conversation.
void write_tree(const sup::node_report& from, messages::TreeNode::Builder to);

/// The same backwards. Nothing if the tree has more than `levels_max` levels: its sender is another
/// process, and what is put below other rows must stay within the nesting that a message may have.
std::optional<sup::node_report> read_tree(messages::TreeNode::Reader from, unsigned levels_max);

} // namespace troupe::actors
