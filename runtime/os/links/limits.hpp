#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>

/// Bounds of the connections of training processes to their node supervisor, beside those of the
/// messages (messages/limits.hpp) and of what the actor decides (actors/limits.hpp).
namespace troupe::limits {

/// Connections for each training process of a node, all together.
inline constexpr std::size_t worker_links_for_each = 4;
/// What waits for a process that does not read: it is left with more.
inline constexpr std::size_t worker_queue_max = 256u << 10;
/// Packets that are read of one connection at a time, and how long it then waits for its next turn:
/// a process that never stops talking keeps neither this thread nor an actor's mailbox busy.
inline constexpr std::size_t worker_packets_at_once = 64;
inline constexpr auto worker_packets_pause = 50ms;

} // namespace troupe::limits
