#pragma once

#include "runtime/base/limits.hpp"

/// The bounds of what is read about the network between nodes.
namespace troupe::limits {

/// Switches between the top of the network and a node.
inline constexpr std::size_t switches_above_max = 16;

} // namespace troupe::limits
