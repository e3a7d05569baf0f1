#pragma once

#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"

/// The bounds of what nodes send each other, and do, to be probed.
namespace troupe::limits {

/// Members of one ring, and what they reduce: of each size, in all repeats together.
inline constexpr std::size_t ring_members_max = nodes_max;
inline constexpr std::size_t ring_sizes_max = 32;
inline constexpr std::uint64_t ring_bytes_max = 64u << 20;
inline constexpr std::uint32_t ring_repeats_max = 100;
/// Of a block so much is sent in one frame, and so much may be on its way to the next member.
inline constexpr std::size_t ring_part = 63u << 10;
inline constexpr std::size_t ring_window = 8u << 20;
/// Once around the ring with nothing: the first two are not measured.
inline constexpr std::uint32_t ring_laps = 11;
/// A member whose own probe was asked for a little later refuses the first dial.
inline constexpr auto ring_redial = 50ms;
/// Links of members that were asked to probe before this one was: so many, and so long.
inline constexpr std::size_t ring_links_waiting_max = 16;
inline constexpr auto ring_link_waits = 15s;
/// What a member says before the others are connected.
inline constexpr std::size_t ring_messages_waiting_max = 2;
static_assert(ring_window / ring_part < credit_messages && ring_window < send_queue_max);

} // namespace troupe::limits
