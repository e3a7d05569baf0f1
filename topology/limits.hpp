#pragma once

#include "runtime/base/limits.hpp"

/// The bounds of what is read about the network between nodes.
namespace troupe::limits {

/// Switches between the top of the network and a node.
inline constexpr std::size_t switches_above_max = 16;
/// A file that tells of the network, as it is and when it was compressed; and the values in it, if
/// it is JSON: 2 MiB of them are a rank table of the largest job with 8 devices in each node.
inline constexpr std::size_t topology_text_max = 64u << 20;
inline constexpr std::size_t topology_values_max = 2u << 20;
/// Arrays and objects within one another. A switch is an object in an array.
inline constexpr std::size_t topology_nesting_max = 2 * switches_above_max + 2;

} // namespace troupe::limits
