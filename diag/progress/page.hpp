#pragma once

#include "runtime/base/time.hpp"

#include <array>
#include <atomic>
#include <cstdint>

/// How far a training process is, in words of memory that it shares with its node supervisor.
///
/// A process that hangs answers no question. So it says beforehand, as it goes: each counter is
/// written by the process with plain atomic stores, without a lock, a system call or Python's
/// global lock, and read by the node supervisor whenever it likes. Nothing here is trusted: a
/// process may write anything into its own page, and harms only what is said about itself
/// (`read_page` bounds each value).
///
/// One writer for each word, any number of readers, and no word needs another to make sense. Times
/// are CLOCK_MONOTONIC in nanoseconds; 0: never.
namespace troupe::diag {

using word = std::atomic<std::uint64_t>;
static_assert(word::is_always_lock_free && sizeof(word) == 8);

/// What a training process is doing. `other` is the time between what is known.
enum class phase : std::uint8_t {
  other,
  input, ///< waits for its data loader
  forward,
  backward,
  optimizer,
  checkpoint, ///< saves or loads
  evaluation,
  user, ///< named by the script
};
inline constexpr std::size_t phases = 8;
const char* name_of(phase p);

/// Which collective a process entered. Values are part of the page's format.
enum class collective : std::uint8_t {
  none,
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
  send,
  recv,
  other,
};
/// As PyTorch names it: "all_reduce".
const char* name_of(collective c);

/// How long something took, as a distribution: four buckets for each factor of two, from 16 us on.
/// p99 of it is known within a fifth. The oldest half fades: at `fades_at` entries all are halved.
struct duration_histogram {
  static constexpr std::size_t buckets = 128;
  static constexpr std::uint32_t fades_at = 4096;
  std::array<std::atomic<std::uint32_t>, buckets> counts;
};

struct phase_words {
  word entered;    ///< how often
  word longest_ns; ///< of those that ended, since the process began
  duration_histogram durations;
};

/// One communicator: a process group of PyTorch, or a communicator of NCCL.
struct communicator_words {
  static constexpr std::size_t name_bytes = 48;
  /// The same at all its members, such as "0" or "tp0"; 0-terminated. Empty: an unused row.
  std::array<std::atomic<char>, name_bytes> name;
  word members;      ///< how many ranks; 0: unknown
  word entered;      ///< collectives that this process has called
  word left;         ///< those that are finished; never more than `entered`
  word entered_ns;   ///< when the last was entered,
  word left_ns;      ///< and when one was last left
  word kind;         ///< of the last that was entered: `collective` in the low byte
  word bytes;        ///< of the last that was entered; 0: unknown
  word waited_ns;    ///< sum of the times in which at least one was not finished
  word members_hash; ///< FNV-1a of the members' global ranks; 0: unknown

  /// A bit of `kind`: what reports enters does not see ends, so `left` says nothing.
  static constexpr std::uint64_t ends_unknown = 256;
};

struct progress_page {
  static constexpr std::uint64_t magic_now = 0x7472'6f75'7065'0002; ///< "troupe", version 2
  static constexpr std::size_t communicators_max = 64;
  static constexpr std::size_t user_phase_bytes = 48;

  word magic; ///< written last when the process has taken the page
  word pid;
  word feeds; ///< bits of `feed`: what reports here
  word step;  ///< the script's own number, or how many were made
  word steps_made;
  word step_ns; ///< when the last was made
  word step_longest_ns;
  duration_histogram step_durations;
  word phase_now; ///< `phase` in the low byte
  word phase_ns;  ///< since when
  std::array<std::atomic<char>, user_phase_bytes> user_phase;
  word touched_ns; ///< something changed that is counted nowhere else: a heartbeat by the script
  std::array<phase_words, phases> each_phase;
  std::array<communicator_words, communicators_max> communicators;
  word script_thread; ///< gettid() of the thread that makes steps, else of the last collective
  word noted_ns;      ///< when anything above was last written
  /// From one such time to the next: what is usual of a program whose steps are not seen.
  duration_histogram silences;
};

/// What reports to a page.
enum class feed : std::uint64_t {
  steps_by_script = 1,    ///< troupe.step()
  steps_by_optimizer = 2, ///< the first optimizer's steps
  collectives = 4,        ///< of PyTorch's process groups
  collective_ends = 8,    ///< when they are finished, too
  input = 16,             ///< data loaders
  phase_changes = 32,
  trace = 64, ///< the tracing library
};

/// Memory for each local rank, all zero at first.
inline constexpr std::size_t page_bytes = 32768;
static_assert(sizeof(progress_page) <= page_bytes);

} // namespace troupe::diag
