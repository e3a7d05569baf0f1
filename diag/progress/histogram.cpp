#include "diag/progress/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::diag {

namespace {

constexpr unsigned first_octave = 14; // 2^14 ns
/// 2^(1/4), 2^(1/2) and 2^(3/4), as parts of 2^63.
constexpr std::array<std::uint64_t, 3> quarters = {
    10'968'499'650'544'839'023u, 13'043'817'825'332'782'212u, 15'511'800'964'685'064'948u};

} // namespace

std::size_t bucket_of(std::uint64_t ns) {
  if (ns >> first_octave == 0)
    return 0;
  const auto octave = 63u - static_cast<unsigned>(__builtin_clzll(ns));
  const auto mantissa = ns << (63 - octave);
  const auto quarter = static_cast<std::size_t>(
      std::count_if(quarters.begin(), quarters.end(), [&](auto from) { return mantissa >= from; }));
  return std::min((octave - first_octave) * quarters.size() + octave - first_octave + quarter,
                  duration_histogram::buckets - 1);
}

std::uint64_t end_of_bucket(std::size_t bucket) {
  return static_cast<std::uint64_t>(
      std::ceil(std::exp2(first_octave + static_cast<double>(bucket + 1) / 4)));
}

void add(duration_histogram& to, std::uint64_t ns) {
  auto& count = to.counts[bucket_of(ns)];
  const auto now = count.load(relaxed) + 1;
  count.store(now, relaxed);
  // Looked at once a bucket is full enough that all together may be: a sum of 128 words each time
  // would be most of the cost.
  if (now % (duration_histogram::fades_at / 16) != 0)
    return;
  std::uint64_t total = 0;
  for (const auto& each : to.counts)
    total += each.load(relaxed);
  if (total >= duration_histogram::fades_at)
    for (auto& each : to.counts)
      each.store(each.load(relaxed) / 2, relaxed);
}

duration_counts read(const duration_histogram& from) {
  duration_counts seen;
  for (std::size_t i = 0; i < seen.counts.size(); ++i) {
    seen.counts[i] =
        std::min(from.counts[i].load(relaxed), std::uint32_t{duration_histogram::fades_at});
    seen.total += seen.counts[i];
  }
  return seen;
}

std::uint64_t quantile(const duration_counts& of, double share) {
  if (of.total == 0)
    return 0;
  const auto wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(of.total);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < of.counts.size(); ++i) {
    below += of.counts[i];
    if (of.counts[i] > 0 && static_cast<double>(below) >= wanted)
      return end_of_bucket(i);
  }
  return end_of_bucket(of.counts.size() - 1);
}

std::uint64_t quantile_by_time(const duration_counts& of, double share) {
  double all = 0;
  for (std::size_t i = 0; i < of.counts.size(); ++i)
    all += of.counts[i] * static_cast<double>(end_of_bucket(i));
  const auto wanted = std::clamp(share, 0.0, 1.0) * all;
  double below = 0;
  for (std::size_t i = 0; i < of.counts.size(); ++i) {
    below += of.counts[i] * static_cast<double>(end_of_bucket(i));
    if (of.counts[i] > 0 && below >= wanted)
      return end_of_bucket(i);
  }
  return 0;
}

} // namespace troupe::diag
