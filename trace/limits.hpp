#pragma once

#include <cstddef>
#include <cstdint>

/// The bounds of the tracing library. All of its memory is static: none of it is allocated while a
/// program runs, and what a program never uses is never touched.
namespace troupe::trace::limits {

/// Calls that are timed at the same moment: each has two CUDA events. Past this a call is counted
/// as untimed.
inline constexpr std::size_t pool_max = 4096;
/// Events are created in blocks of so many pairs, by the library's own thread.
inline constexpr std::size_t pool_block = 128;
/// CUDA contexts, which is devices, of one process.
inline constexpr std::size_t contexts_max = 16;
/// Streams with calls under way that are told apart; those beyond share a queue.
inline constexpr std::size_t streams_max = 64;
/// Communicators of NCCL at the same moment. Calls of those beyond are counted and not timed.
inline constexpr std::size_t communicators_max = 256;
/// Pairs of communicator and stream in one ncclGroupStart … ncclGroupEnd.
inline constexpr std::size_t group_max = 16;
/// Sets of labels with measurements: what one `.prom` file may hold.
inline constexpr std::size_t buckets_max = 512;
/// Finished calls that a timeline may hold.
inline constexpr std::size_t timeline_max = 16384;
/// A metrics text, and a timeline, in bytes; a longer one ends early, with a line that says so.
inline constexpr std::size_t metrics_bytes_max = 2u << 20;
inline constexpr std::size_t timeline_bytes_max = 16u << 20;
/// Names and paths from the environment.
inline constexpr std::size_t name_max = 128;
inline constexpr std::size_t path_max = 512;
/// The first measurements of each set of labels are counted and not measured: they hold the
/// loading of kernels, the set-up of connections and the choice of algorithms.
inline constexpr std::uint32_t warm_up = 5;
/// p99, maximum, minimum and bandwidth are of the last one to two of these.
inline constexpr std::uint64_t window_ns = 60'000'000'000;

/// The poller looks this often while calls are under way, and less often the longer the oldest has
/// been: at a 64th of its age. Durations come from the device and do not depend on it.
inline constexpr std::uint64_t poll_ns = 100'000;
inline constexpr std::uint64_t poll_slowest_ns = 5'000'000;
/// The poller looks for this long after the last call, and then sleeps until the next.
inline constexpr std::uint64_t linger_ns = 5'000'000;
/// How long the end of a process waits for the library's two threads.
inline constexpr std::uint64_t end_within_ns = 500'000'000;
/// Timelines that are requested more often than this are written once.
inline constexpr std::uint64_t timeline_every_ns = 1'000'000'000;
/// What a client of the port may send, and how long it may take.
inline constexpr std::size_t request_bytes_max = 4096;
inline constexpr int client_within_ms = 1000;

static_assert(pool_max % pool_block == 0);
static_assert((pool_max & (pool_max - 1)) == 0 && pool_max <= 0xffff);
static_assert((communicators_max & (communicators_max - 1)) == 0);

} // namespace troupe::trace::limits
