#pragma once

#include "actors/master/network_check/network_check_core.hpp"

#include <utility>

namespace troupe::actors::network_check {

using link = std::pair<node_index, node_index>;

/// Nodes to leave so that no link is left: as few as possible, a slow one before one that is not,
/// then the later. Exact for up to 20 links that hang together, and by the most links first beyond.
std::vector<node_index> fewest_ends(const std::vector<link>& links, const std::vector<bool>& slow);

} // namespace troupe::actors::network_check
