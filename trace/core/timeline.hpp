#pragma once

#include "trace/core/operation.hpp"
#include "trace/core/text.hpp"
#include "trace/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::trace {

/// A call on the device's own time axis, moved to CLOCK_MONOTONIC.
struct timeline_event {
  operation what;
  const void* context = nullptr;
  const void* stream = nullptr;
  std::uint64_t launched_ns = 0; ///< by the program
  std::uint64_t began_ns = 0, ended_ns = 0;
  bool under_way = false; ///< it ends after `ended_ns`
};

/// The last calls that were timed, in memory of a fixed size. One thread at a time.
class timeline {
 public:
  /// How many are remembered; more than `limits::timeline_max` are not.
  void keep(std::size_t count);
  void add(const timeline_event& event);
  std::size_t size() const { return added_ < kept_ ? static_cast<std::size_t>(added_) : kept_; }
  /// From the oldest, 0, on.
  const timeline_event& at(std::size_t index) const;

 private:
  std::array<timeline_event, limits::timeline_max> events_;
  std::uint64_t added_ = 0;
  std::size_t kept_ = 0;
};

/// Where a device's times lie on CLOCK_MONOTONIC.
///
/// Events of CUDA tell only differences. The first call of a device is laid so that it ended when
/// it was seen to have ended; each later one by its distance from an earlier one, and moved if it
/// would begin before it was launched or end after it was seen. So calls keep their order and
/// distances, and the error of the whole axis stays below the poller's period.
class device_axis {
 public:
  bool begun() const { return begun_; }
  /// When the event began, from which `place` is told the distance.
  std::uint64_t anchor_ns() const { return anchor_ns_; }
  /// `from_anchor_ns`: from the anchor's begin to this call's; ignored for the first. Returns the
  /// call's begin.
  std::uint64_t place(std::int64_t from_anchor_ns, std::uint64_t duration_ns,
                      std::uint64_t launched_ns, std::uint64_t seen_ns);
  /// The call that was placed last is the anchor from now on.
  void move_anchor() { anchor_ns_ = last_ns_; }
  void forget() { begun_ = false; }

 private:
  std::uint64_t anchor_ns_ = 0, last_ns_ = 0;
  bool begun_ = false;
};

/// How the trace names the process.
struct timeline_labels {
  std::string_view job;
  int rank = 0, local_rank = 0, world_size = 1;
  std::int64_t to_epoch_ns = 0; ///< from CLOCK_MONOTONIC to the time since 1970
};

/// Chrome's trace format, which Perfetto reads: one process for each rank, one row for each stream.
/// `name_of_function` writes the name of a kernel. False: it did not fit, and is cut short, but
/// whole as JSON. Precondition: `into` has eight bytes reserved.
bool render_timeline(text& into, const timeline_event* events, std::size_t count,
                     const timeline_labels& labels, const char* why,
                     void (*name_of_function)(text& into, const void* function));

} // namespace troupe::trace
