#pragma once

#include <cstddef>

/// Bounds of what is learnt of this node's training processes from outside.
namespace troupe::limits {

/// Stacks of the processes of one node, as messages.
inline constexpr std::size_t dump_bytes_max = 256u << 20;
/// Training processes of one dump: what a command line has room for.
inline constexpr std::size_t dumped_processes_max = 1'024;

} // namespace troupe::limits
