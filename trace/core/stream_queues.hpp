#pragma once

#include "trace/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::trace {

/// Calls under way, by the stream that they run in.
///
/// A stream does its work in order, so only the oldest call of each needs to be asked for: the cost
/// of a look grows with the streams and not with the calls. And a stream is stuck when its oldest
/// call has been the oldest for too long; how long ago it was launched says little, as programs
/// launch far ahead. Calls are numbers below `limits::pool_max`. One thread at a time.
class stream_queues {
 public:
  struct stream {
    const void* context = nullptr;
    const void* handle = nullptr;
    std::uint32_t calls = 0;
    std::uint32_t oldest = 0;
    std::uint32_t newest = 0;
    std::uint64_t oldest_since_ns = 0; ///< since when that call is the oldest
  };

  /// Returns the index of its stream, which stays while the stream has calls.
  std::size_t add(std::uint32_t call, const void* context, const void* handle,
                  std::uint64_t launched_ns);
  /// The oldest call of the stream is over. Precondition: it has one.
  void remove_oldest(std::size_t stream, std::uint64_t now_ns);
  void clear();

  std::size_t calls() const { return calls_; }
  /// Those with an index below; some have no calls.
  std::size_t streams() const { return used_; }
  const stream& at(std::size_t index) const { return streams_[index]; }
  /// How long the one that has waited longest has been the oldest of its stream; 0: there is none.
  std::uint64_t longest_wait_ns(std::uint64_t now_ns) const;
  /// That call. Precondition: there is one.
  std::uint32_t longest_waited_for() const;

 private:
  /// `streams_max`: none has calls.
  std::size_t slowest() const;
  std::size_t place_of(const void* context, const void* handle);

  std::array<stream, limits::streams_max> streams_;
  std::array<std::uint16_t, limits::pool_max> next_{};
  std::size_t used_ = 0, calls_ = 0;
};

/// Whether the device stands still, from how long the oldest call has been waited for.
class hang_rule {
 public:
  hang_rule() = default;
  explicit hang_rule(std::uint64_t timeout_ns) : timeout_ns_(timeout_ns) {}

  /// True: it has just begun to hang. Told once for each hang.
  bool look(std::uint64_t longest_wait_ns) {
    const auto hung = longest_wait_ns > timeout_ns_;
    const auto began = hung && !hung_;
    hung_ = hung;
    hangs_ += began ? 1 : 0;
    return began;
  }
  bool hung() const { return hung_; }
  std::uint64_t hangs() const { return hangs_; }

 private:
  std::uint64_t timeout_ns_ = 0;
  std::uint64_t hangs_ = 0;
  bool hung_ = false;
};

} // namespace troupe::trace
