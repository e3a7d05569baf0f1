#pragma once

#include "diag/progress/page.hpp"

#include <array>
#include <cstdint>

/// Durations by size, in the words of `duration_histogram`: what is long is known from what was
/// usual, and a few kilobytes remember it for each phase.
namespace troupe::diag {

/// No word of a page needs another to make sense.
inline constexpr auto relaxed = std::memory_order_relaxed;

/// Bucket 0 ends at 16.384 us * 2^(1/4), each other one 2^(1/4) later; the last has no end. So the
/// bounds of a bucket are less than a fifth apart.
std::size_t bucket_of(std::uint64_t ns);

/// Where a bucket ends, in nanoseconds.
std::uint64_t end_of_bucket(std::size_t bucket);

/// Adds one duration. One thread at a time; readers may read meanwhile, and see a halving half
/// done.
void add(duration_histogram& to, std::uint64_t ns);

/// A histogram at one moment.
struct duration_counts {
  std::array<std::uint32_t, duration_histogram::buckets> counts{};
  std::uint64_t total = 0;
};

/// Bounds what another process wrote: no bucket counts more than `duration_histogram::fades_at`.
duration_counts read(const duration_histogram& from);

/// A duration that `share` (0 to 1) of the durations do not exceed: the end of the bucket in which
/// that one is. 0 if there is none.
std::uint64_t quantile(const duration_counts& of, double share);

/// The same by time: durations up to this one take at least `share` of all the time. Where a
/// thousand short ones surround one that is long, this one is the long one.
std::uint64_t quantile_by_time(const duration_counts& of, double share);

} // namespace troupe::diag
