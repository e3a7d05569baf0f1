#pragma once

#include "runtime/base/limits.hpp"

/// The bounds of checkpoints: steps, shards, snapshots and their replicas.
namespace troupe::limits {

// Steps on a disk.
/// Shards of one step, and the text that names them all.
inline constexpr std::size_t shards_max = 256u << 10;
inline constexpr std::size_t manifest_bytes_max = storage_small_max;
/// Directories that a node's saver remembers at once.
inline constexpr std::size_t checkpoint_places_max = 16;
/// Earlier runs of which a step says that training went through them.
inline constexpr std::size_t line_runs_max = 64;
/// Saves of earlier runs that a record says have nothing to go on from: of each kind.
inline constexpr std::size_t given_up_max = 256;
/// Steps that are there at once.
inline constexpr std::size_t steps_kept_max = 64u << 10;
// A step of the largest job, with several shards for each rank.
static_assert(shards_max * 2 * 100 <= manifest_bytes_max && shards_max <= storage_list_max);

// Snapshots that are to be written.
/// Snapshots of one node that are requested and not finalized.
inline constexpr std::size_t persist_requests_max = 4 * local_world_max;
/// What a training process may give all shards of a step.
inline constexpr std::chrono::seconds save_within_min = 1s, save_within_max = 3'600s;

// Files of one snapshot, archives of torch.save in them, and the text that lists them.
inline constexpr std::size_t snapshot_files_max = 4096;
inline constexpr std::size_t snapshot_archives_max = 1u << 20;
inline constexpr std::size_t file_list_bytes_max = storage_small_max;
static_assert(snapshot_archives_max * 16 + snapshot_files_max * (22 + 1024) <= file_list_bytes_max);

// Memory of snapshots.
/// Of a node's memory this part stays free, between these bounds: training grows, too.
inline constexpr std::uint64_t memory_headroom_divisor = 32;
inline constexpr std::uint64_t memory_headroom_min = 16u << 20, memory_headroom_max = 1u << 30;
/// How long a process waits until the processes of its node that fill memory just now, or are to
/// give some back, have done so. And for the lock of the node's ledger, which is held for less than
/// a millisecond.
inline constexpr auto memory_wait_within = 2s;
inline constexpr auto memory_lock_within = 2s;
/// How long a save waits until what other directories of its program have is on the disk, where
/// memory does not suffice for both.
inline constexpr auto other_places_wait_within = 30s;

// Copies of snapshots at other nodes.
/// One part of a piece, in a message of its own: the memory of such messages is used again and
/// again, while that of large ones goes back to the system and costs more than all else. And what a
/// source has on its way to one target.
inline constexpr std::size_t copy_part = 63u << 10;
inline constexpr std::size_t copy_window = 8u << 20;
/// What a node sends to others in a second on bulk links, unless told otherwise: training needs its
/// network too.
inline constexpr std::uint64_t copy_rate = 512u << 20;
/// The largest snapshot of which pieces are held.
inline constexpr std::uint64_t copy_snapshot_max = std::uint64_t{1} << 44;
/// A source that has nothing to give lets go of its links.
inline constexpr auto copy_links_idle = 30s;
/// Connections of sources at a target: some for each member of its groups.
inline constexpr std::size_t replication_sources_max = 16 * local_world_max;
/// Parities of a step that one local rank's memory holds: with those of the step before it, as many
/// as it has slots.
inline constexpr std::uint32_t copy_parity_max = 4;
static_assert(copy_part + 1024 <= (64u << 10) && copy_window < send_queue_max);
static_assert(copy_part <= bulk_burst && copy_window / copy_part < credit_messages);
// Sources leave room for the links of other purposes.
static_assert(2 * replication_sources_max <= bulk_peers_max);

} // namespace troupe::limits
