#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>

/// The bounds of the runtime, with the relations between them. All sizes in bytes unless the name
/// says otherwise. Each layer above has a limits.hpp of its own, in the same namespace; a relation
/// between bounds of two layers is asserted in the higher one.
namespace troupe::limits {

// The size of a job. A larger one is refused with a clear line rather than served badly.
inline constexpr std::uint32_t nodes_max = 16'384;
inline constexpr std::uint32_t local_world_max = 1'024;
inline constexpr std::uint32_t restarts_max = 1'000'000;
inline constexpr std::size_t name_max = 255;
/// A node's name is a part of the paths of actors, which are names of senders:
/// "master/job/generation 16385 of term 3/NODE". The rest of such a path has room beside it.
inline constexpr std::size_t node_name_max = 200;
static_assert(node_name_max + 55 <= name_max);

// The link.
inline constexpr std::size_t send_queue_max = 64u << 20;
/// Checked messages handed to an actor and not yet taken by it; past this, reading pauses.
inline constexpr std::size_t credit_messages = 256;
/// Connections whose handshake is under way, and as many again that wait for theirs.
inline constexpr std::size_t unproven_connections_max = 256;
/// When there are that many, a handshake must have had this long before it is ended for another: a
/// whole job that reconnects at once is no attack, and each needs its TLS handshake.
inline constexpr auto unproven_grace = 1s;
/// Refused connections are told one by one up to this number in each such period, and then counted.
inline constexpr std::uint64_t refusals_told = 10;
inline constexpr auto refusals_counted_for = 10s;
inline constexpr auto handshake_within = 5s;
/// A sign of life when there is nothing else to say.
inline constexpr auto beat_every = 250ms;
/// Beats that a process which listens hears and sends in a second, at most: each costs it about 15
/// us. With more peers than that allows, beats become rarer and the lease longer.
inline constexpr std::size_t beats_per_second = 15'000;
inline constexpr int beats_in_a_lease = 8;
/// A link is a lease that signs of life renew: a silent peer is acted on within this. A pause of
/// half of it is never a death. docs/adr/0011-membership-is-a-lease.md has the sums.
inline constexpr std::chrono::milliseconds lease = 2s;
inline constexpr std::chrono::milliseconds lease_min = 1s;
inline constexpr std::chrono::milliseconds lease_max = 600s;
/// How long a peer whose connection was closed, and not by a Goodbye, may take to be back: a
/// process that lives dials again at once.
inline constexpr auto return_within = 500ms;
inline constexpr auto dial_within = 5s;
/// How long a closing link waits for its last messages to be taken.
inline constexpr auto linger_max = 1s;
/// Frames and bytes handed to the kernel in one gathered write.
inline constexpr std::size_t gather_frames_max = 64;
inline constexpr std::size_t gather_bytes_max = 1u << 20;
/// Bytes that a link copies for their encryption at a time: what a TLS record holds.
inline constexpr std::size_t encrypted_at_once = 16u << 10;
/// Accepting pauses this long when the process is out of file descriptors.
inline constexpr auto accept_backoff = 100ms;
/// A job token, in characters: fewer could be guessed from a handshake that was overheard.
inline constexpr std::size_t token_min = 32;
inline constexpr std::size_t token_max = 1'024;
static_assert(lease_min >= 4 * beat_every && lease_min <= lease && lease <= lease_max);
static_assert(lease == beats_in_a_lease * beat_every);
static_assert(return_within <= lease / 4);
// A pause of a second, and then a beat that comes a fifth of a second late.
static_assert(lease / 2 >= 1s && lease * 7 / 8 > 1s + beat_every + beat_every);
static_assert(unproven_grace < handshake_within);

// Bulk links between nodes.
/// Links of other nodes at one node, for all purposes together.
inline constexpr std::size_t bulk_peers_max = 2 * nodes_max;
/// What a node may send on them at once after a rest, when it is told how fast it may send at most.
inline constexpr std::size_t bulk_burst = 4u << 20;

// Processes.
/// After SIGKILL a process is gone at once unless the kernel holds it (D state): then we say so and
/// go on.
inline constexpr auto kill_within = 5s;

// Supervision.
inline constexpr auto request_within = 5s;
inline constexpr auto describe_within = 1s;
/// A child that a dynamic supervisor had is still in its report for this long, the newest of them.
inline constexpr auto ended_shown_for = 60s;
inline constexpr std::size_t ended_shown_max = 16;
/// How long an engine that goes waits for actors that were killed.
inline constexpr auto engine_patience = 1s;
inline constexpr std::size_t children_max = 32'768;
static_assert(children_max > nodes_max);

// The journal.
/// Records that wait to be written.
inline constexpr std::size_t journal_queue_max = 1'024;
inline constexpr std::size_t journal_bytes_max = 1u << 30;
inline constexpr std::size_t journal_page_size = 4'096;
/// Pages in its write-ahead log before they are moved to the file itself, which waits for the disk.
inline constexpr std::size_t journal_log_pages = 4'096;
/// What a power cut may take: the decisions of this long, and of one wait for the disk.
inline constexpr auto journal_sync_within = 1s;

// The log.
/// Lines that wait for a slow terminal or disk; past this the oldest is dropped.
inline constexpr std::size_t log_queue_max = 1'024;
/// The same of a store's process, which starts with every generation and says little.
inline constexpr std::size_t store_log_queue_max = 64;
/// How long the end of a program waits for a terminal or a disk that takes no more.
inline constexpr auto log_end_within = 2s;
/// The same when the console is a file.
inline constexpr auto log_end_on_disk_within = 30s;
static_assert(log_end_within < log_end_on_disk_within);

// The output of processes on the console.
/// A longer line passes in pieces.
inline constexpr std::size_t console_line_max = 256u << 10;
/// What is handed to the console at once: what a pipe holds, so that one can see whether it takes
/// any.
inline constexpr std::size_t console_write_max = 64u << 10;
/// How long other lines wait for the rest of one that passes in pieces; then it is ended.
inline constexpr auto console_piece_waits = 1s;
/// At the end of the launcher: how long a console that is no file may take nothing before what is
/// left stays in the files,
inline constexpr auto console_patience = 5s;
/// and how long it may take in all.
inline constexpr auto console_drain_within = 60s;
static_assert(console_patience < console_drain_within);

// What is written out.
/// A name of a stored file, all its parts together.
inline constexpr std::size_t storage_name_max = 1'024;
/// Directories within directories.
inline constexpr std::size_t storage_depth_max = 32;
/// Files of one list.
inline constexpr std::size_t storage_list_max = 1u << 20;
/// A small file, read or replaced whole.
inline constexpr std::size_t storage_small_max = 64u << 20;

} // namespace troupe::limits
