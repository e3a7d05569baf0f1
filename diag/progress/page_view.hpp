#pragma once

#include "diag/progress/histogram.hpp"

#include <optional>
#include <string>
#include <vector>

/// The reader's end of a page: all of it at one moment, as plain values.
///
/// The page is another process's memory, which may hold anything: a number out of its range, a time
/// in the future, a name that is no text. Each value is bounded here, so that what a reader makes
/// of it needs no bound of its own.
namespace troupe::diag {

struct phase_view {
  std::uint64_t entered = 0;
  std::uint64_t longest_ns = 0;
  duration_counts durations;
};

struct communicator_view {
  std::string name; ///< printable; never empty
  std::uint64_t members = 0;
  std::uint64_t entered = 0;
  std::uint64_t left = 0; ///< at most `entered`
  bool ends_known = true;
  std::uint64_t entered_ns = 0;
  std::uint64_t left_ns = 0;
  collective kind = collective::none;
  std::uint64_t bytes = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t members_hash = 0;
};

/// Times are at most the moment of reading.
struct page_view {
  std::uint64_t pid = 0;
  std::uint64_t feeds = 0; ///< only bits of `feed`
  std::uint64_t step = 0;
  std::uint64_t steps_made = 0;
  std::uint64_t step_ns = 0;
  std::uint64_t step_longest_ns = 0;
  duration_counts step_durations;
  phase phase_now = phase::other;
  std::uint64_t phase_ns = 0;
  std::string user_phase; ///< printable
  std::uint64_t touched_ns = 0;
  std::array<phase_view, phases> each_phase;
  std::vector<communicator_view> communicators; ///< those that have a name
  std::uint64_t script_thread = 0;              ///< a process's number at most
  duration_counts silences;

  bool fed_by(feed from) const { return (feeds & static_cast<std::uint64_t>(from)) != 0; }
  /// When anything was last written here, phases and collectives included. 0: never.
  std::uint64_t newest_ns() const;
};

/// Nothing if no process has taken the page, or if it is of another format. `now` is this machine's
/// CLOCK_MONOTONIC in nanoseconds.
std::optional<page_view> read_page(const progress_page& page, std::uint64_t now);

} // namespace troupe::diag
