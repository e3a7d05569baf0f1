#pragma once

#include "trace/core/operation.hpp"
#include "trace/core/text.hpp"
#include "trace/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::trace {

/// A call, on the axis of its device or on CLOCK_MONOTONIC.
struct timeline_event {
  operation what;
  std::uint32_t context = 0; ///< which of the process
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
/// Events of CUDA tell only differences. Each call gets a time on an axis of its device, by its
/// distance from an earlier call; and the axis has an offset to CLOCK_MONOTONIC, the same for all
/// calls, so that they keep their order and their distances. A call has ended when it is seen to
/// have ended: the offset is the largest with which that holds for all calls, and so is too large
/// by what the quickest look was late, at most. The two clocks may drift apart: what was seen long
/// ago counts less.
class device_axis {
 public:
  bool begun() const { return begun_; }
  /// `from_anchor_ns`: from the anchor's begin to this call's; ignored for the first. Returns the
  /// call's begin on the axis. `seen_ns` never decreases.
  std::uint64_t place(std::int64_t from_anchor_ns, std::uint64_t duration_ns,
                      std::uint64_t seen_ns);
  std::int64_t offset_ns() const { return offset_ns_; }
  /// The call that was placed last is the anchor from now on.
  void move_anchor() { anchor_ns_ = last_ns_; }
  void forget() { begun_ = false; }

 private:
  std::uint64_t anchor_ns_ = 0, last_ns_ = 0, seen_ns_ = 0;
  std::int64_t offset_ns_ = 0;
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
