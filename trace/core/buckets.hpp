#pragma once

#include "trace/core/operation.hpp"
#include "trace/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::trace {

/// How long calls took, as a distribution: four buckets for each factor of two, from 1 us on. A
/// quantile of it is too large by a fifth at most.
struct duration_counts {
  static constexpr std::size_t buckets = 100;
  std::array<std::uint32_t, buckets> counts{};

  static std::size_t bucket_of(std::uint64_t ns);
  /// The longest duration that falls into it.
  static std::uint64_t bucket_max_ns(std::size_t bucket);
};

/// Measurements of a minute, or what there is of it.
struct measured_window {
  std::uint64_t began_ns = 0;
  std::uint64_t timed = 0, sum_ns = 0, min_ns = 0, max_ns = 0;
  double work = 0; ///< bytes on the bus, or floating-point operations
  duration_counts durations;
};

/// Of calls with the same labels.
struct bucket {
  // The labels.
  operation_class what{};
  std::uint8_t kind = 0;
  element type = element::unknown;
  std::uint32_t members = 0;
  std::uint32_t level = 0;

  std::uint64_t seen = 0; ///< timed ones, the warm-up among them
  std::uint64_t timed = 0, sum_ns = 0, bytes = 0;
  double work = 0;
  std::array<measured_window, 2> windows; ///< the current one, and the one before

  struct recent {
    std::uint64_t timed = 0, sum_ns = 0, min_ns = 0, max_ns = 0, p99_ns = 0;
    double work_per_second = 0; ///< 0: nothing was timed
  };
  recent of_windows() const;
};

/// What was measured, by sets of labels.
///
/// An average since the start hides what happened a minute ago, and each measurement by itself is
/// too much for a file. So each set of labels has totals, and a distribution of the last one to two
/// minutes. The number of sets is bounded: sizes fall into levels, and what finds no place is
/// counted in `without_place`.
class buckets {
 public:
  /// `now_ns` never decreases.
  void add(const operation& done, std::uint64_t duration_ns, std::uint64_t now_ns);
  /// Windows that are over fade, also of calls that are not made any more.
  void turn(std::uint64_t now_ns);

  std::size_t size() const { return used_; }
  const bucket& at(std::size_t index) const { return all_[index]; }
  std::uint64_t without_place() const { return without_place_; }

 private:
  bucket* place_of(const operation& done);

  std::array<bucket, limits::buckets_max> all_;
  std::size_t used_ = 0;
  std::uint64_t without_place_ = 0;
};

/// Bytes on the bus, bytes copied, or floating-point operations.
double work_of(const operation& done);

} // namespace troupe::trace
