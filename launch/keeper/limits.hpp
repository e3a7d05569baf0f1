#pragma once

#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"

/// The bounds of the keeper, and of the node supervisor in its care.
namespace troupe::limits {

/// More crashes than that in so short a time are no bad luck.
inline constexpr std::size_t supervisor_crashes_max = 10;
inline constexpr auto supervisor_crashes_within = 60s;
/// After the first crash there is no wait, after the second this one, and then twice as long each
/// time; a supervisor that worked for a while is a first one again.
inline constexpr auto supervisor_works_after = 5s;
inline constexpr auto supervisor_restart_first = 100ms;
inline constexpr auto supervisor_restart_max = 1s;
/// A stopped supervisor (SIGSTOP) is continued after this: a look at a process is over by then.
inline constexpr auto supervisor_stopped_within = 10s;
/// A process that the system refuses to fork is tried again after the first wait, then after twice
/// as long each time;
inline constexpr auto fork_again_first = 100ms;
inline constexpr auto fork_again_max = 5s;
/// the supervisor for this long, while the workers train on without one,
inline constexpr auto supervisor_fork_within = 60s;
/// and the store for as long as the supervisor waits for it.
inline constexpr auto store_fork_within = 4s;
/// How long a launcher whose user pressed Ctrl-Z stays stopped, for the shell to see it.
inline constexpr auto stopped_for_the_shell = 200ms;
// A supervisor that always crashes is given up, on a machine that takes seconds to start it as
// well: otherwise the waits alone would keep the crashes apart.
static_assert(supervisor_crashes_max * 4 * supervisor_restart_max < supervisor_crashes_within);
/// What the kernel says of a process, in some sixty lines.
inline constexpr std::size_t process_status_max = 16u << 10;
/// What a supervisor leaves for its successor, in each of a few slots.
inline constexpr std::size_t kept_bytes_max = 16u << 20;
inline constexpr std::size_t kept_slots = 4;
/// One message between keeper, supervisor and store, and a text in it.
inline constexpr std::size_t packet_max = 4u << 10;
inline constexpr std::size_t packet_text_max = 1u << 10;
static_assert(name_max < packet_text_max && 2 * packet_text_max < packet_max);
/// Packets for a supervisor that does not read: one for each of its processes, and as many of the
/// rest.
inline constexpr std::size_t keeper_queue_max = 4 * local_world_max;
/// How long a store may take to listen.
inline constexpr auto store_opens_within = 5s;
static_assert(store_fork_within < store_opens_within);
/// The user is told of processes that workers have left behind, if they are there for so long.
inline constexpr auto left_told_after = 1s;
/// How many of them are named.
inline constexpr std::size_t left_named_max = 3;
/// What is killed one by one and still there after this forks as fast as it is killed.
inline constexpr auto outrun_after = 1s;
static_assert(outrun_after < kill_within);
/// PyTorch's shared-memory manager unlinks what its clients shared 2 s after the last of them is
/// gone. It has this time, from when it is alone.
inline constexpr auto memory_unlinked_within = 5s;
/// What a killed launcher has left is looked for again and again, so long.
inline constexpr auto burial_within = 2s;
/// A killed launcher keeps its locks until the kernel has taken the last of its processes apart,
/// and the next launcher may come before: it looks a second time.
inline constexpr auto second_look_after = 1s;
/// What other launchers may have left, at each look: control groups, and records of lives.
inline constexpr std::size_t abandoned_groups_looked_at = 64;
inline constexpr std::size_t life_records_looked_at = 4'096;
inline constexpr std::size_t life_record_bytes_max = 16u << 10;
static_assert(kept_bytes_max >= 2 * frame_max);

} // namespace troupe::limits
