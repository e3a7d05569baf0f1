#pragma once

#include "runtime/base/limits.hpp"

#include <cstddef>
#include <cstdint>

/// The bounds of what is read about the network between nodes.
namespace troupe::limits {

/// Switches between the top of the network and a node.
inline constexpr std::size_t switches_above_max = 16;
/// A file that tells of the network, as it is and when it was compressed; and the values in it, if
/// it is JSON: 2 MiB of them are a rank table of the largest job with 8 devices in each node.
inline constexpr std::size_t topology_text_max = 64u << 20;
inline constexpr std::size_t topology_values_max = 2u << 20;
/// What a node is called beside its name.
inline constexpr std::size_t node_names_max = 16;
/// The name of a member of an object: a label of Kubernetes has 253 characters, '/' and 63.
inline constexpr std::size_t topology_member_max = 512;
/// Steps of a program that a pattern of names becomes,
inline constexpr std::size_t name_pattern_steps_max = 4'096;
/// and looks at nodes, and steps of patterns, that one file may cost: some seconds.
inline constexpr std::uint64_t topology_looks_max = 1u << 30;
/// Arrays and objects within one another. A switch is an object in an array.
inline constexpr std::size_t topology_nesting_max = 2 * switches_above_max + 2;

} // namespace troupe::limits
