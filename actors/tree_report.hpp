#pragma once

#include "messages/shell.capnp.h"
#include "runtime/sup/report.hpp"

namespace troupe::actors {

/// A supervisor's report as a message of the shell conversation.
void write_tree(const sup::node_report& from, messages::TreeNode::Builder to);

} // namespace troupe::actors
