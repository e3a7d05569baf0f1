#pragma once

#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"

#include <cstddef>
#include <cstdint>

/// The bounds of what a node finds out about itself before it trains, and with others.
namespace troupe::limits {

/// Devices of a node, and pairs of them between which switches are looked at.
inline constexpr std::uint32_t probed_devices_max = 64;
inline constexpr std::size_t box_pairs_max = 256;
/// What a pair must have if nothing else is said: dlrover-run's, of MetaX's fork.
inline constexpr std::uint64_t box_bandwidth_min = 10'000;
inline constexpr std::uint32_t box_channels_min = 2;

/// A device of whose memory so many percent are taken before training begins has another user: a
/// process that an earlier job has left behind, or a job that was given the same devices. Training
/// beside it is slow, or ends when the memory is used up, hours later. What drivers and displays
/// take by themselves is far less: 1 to 2 %. The bound is DLRover's, so that a cluster finds the
/// same nodes good under both.
inline constexpr std::uint64_t memory_in_use_percent = 30;

/// The message with all devices and pairs in it.
inline constexpr std::size_t node_probed_max = 1u << 20;
static_assert(node_probed_max < frame_max);
/// A line of a report, and a device's name.
static_assert((probed_devices_max + box_pairs_max + 1) * (failure_line_max + name_max) <
              node_probed_max);

/// A file that describes simulated devices.
inline constexpr std::size_t simulated_devices_text_max = 1u << 20;

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
/// All members of a group are asked at one moment: one that is not connected by then is cut off, or
/// away, and the limit of the whole probe, which a slow network may need, is not waited for.
inline constexpr auto ring_connect_within = 5s;
/// Links of members that were asked to probe before this one was: so many, and so long.
inline constexpr std::size_t ring_links_waiting_max = 16;
inline constexpr auto ring_link_waits = 15s;
/// What a member says before the others are connected.
inline constexpr std::size_t ring_messages_waiting_max = 2;
/// The key of a group: NCCL's has 128 bytes, others' have 4,108.
inline constexpr std::size_t probe_key_max = 8u << 10;
/// Devices of all members of a group.
inline constexpr std::size_t probed_ranks_max = ring_members_max * probed_devices_max;
/// So much before the end of a group's time its devices must be done: a process that is killed then
/// can still say where it was.
inline constexpr auto devices_end_before = 500ms;
static_assert(ring_window / ring_part < credit_messages && ring_window < send_queue_max);

} // namespace troupe::limits
