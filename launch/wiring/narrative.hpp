#pragma once

#include "runtime/base/log.hpp"

namespace troupe::launch {

/// On the master's node the master tells the story of the whole job. Elsewhere the node's own part
/// is what there is to tell: its `info` events become `notice`, other than the coming and going of
/// actors.
log::sink told_by_node(log::sink to);

} // namespace troupe::launch
