#include "trace/core/buckets.hpp"

#include <algorithm>

namespace troupe::trace {

namespace {

constexpr std::uint64_t shortest_ns = 1000;

std::uint32_t level_of(const operation& done) {
  switch (done.what) {
  case operation_class::collective:
  case operation_class::copy:
    return size_level(done.bytes);
  case operation_class::gemm:
    return flop_level(done.flop);
  case operation_class::launch:
    return 0;
  }
  return 0;
}

void roll(bucket& b, std::uint64_t now_ns) {
  auto& [current, before] = b.windows;
  if (now_ns < current.began_ns + limits::window_ns)
    return;
  // One that is longer past than its successor would last says nothing about now.
  if (now_ns < current.began_ns + 2 * limits::window_ns)
    before = current;
  else
    before = {};
  current = {};
  current.began_ns = now_ns;
}

void add(measured_window& window, std::uint64_t ns, double work) {
  window.min_ns = window.timed == 0 ? ns : std::min(window.min_ns, ns);
  window.max_ns = std::max(window.max_ns, ns);
  ++window.timed;
  window.sum_ns += ns;
  window.work += work;
  ++window.durations.counts[duration_counts::bucket_of(ns)];
}

} // namespace

std::size_t duration_counts::bucket_of(std::uint64_t ns) {
  const auto quarters = ns * 4 / shortest_ns; // in quarters of the shortest
  if (quarters <= 4)
    return 0;
  const auto highest = 63 - __builtin_clzll(quarters);
  const auto fraction = (quarters >> (highest - 2)) & 3;
  return std::min(buckets - 1, static_cast<std::size_t>((highest - 2) * 4) + fraction);
}

std::uint64_t duration_counts::bucket_max_ns(std::size_t bucket) {
  const auto doubled = bucket / 4;
  const auto fraction = bucket % 4;
  return ((5 + fraction) * shortest_ns << doubled) / 4;
}

double work_of(const operation& done) {
  switch (done.what) {
  case operation_class::collective:
    return static_cast<double>(done.bytes) * bus_factor(done.collective(), done.members);
  case operation_class::copy:
    return static_cast<double>(done.bytes);
  case operation_class::gemm:
    return static_cast<double>(done.flop);
  case operation_class::launch:
    return 0;
  }
  return 0;
}

bucket::recent bucket::of_windows() const {
  recent all;
  double of_both = 0;
  for (const auto& window : windows) {
    if (window.timed == 0)
      continue;
    all.min_ns = all.timed == 0 ? window.min_ns : std::min(all.min_ns, window.min_ns);
    all.max_ns = std::max(all.max_ns, window.max_ns);
    all.timed += window.timed;
    all.sum_ns += window.sum_ns;
    of_both += window.work;
  }
  if (all.timed == 0)
    return all;
  if (all.sum_ns > 0)
    all.work_per_second = of_both * 1e9 / static_cast<double>(all.sum_ns);
  const auto beyond = all.timed / 100; // so many may be longer
  std::uint64_t longer = 0;
  for (auto at = duration_counts::buckets; at-- > 0;) {
    for (const auto& window : windows)
      longer += window.durations.counts[at];
    if (longer > beyond) {
      all.p99_ns = std::min(duration_counts::bucket_max_ns(at), all.max_ns);
      break;
    }
  }
  return all;
}

bucket* buckets::place_of(const operation& done) {
  const auto level = level_of(done);
  const auto end = all_.begin() + static_cast<std::ptrdiff_t>(used_);
  const auto found = std::find_if(all_.begin(), end, [&](const bucket& b) {
    return b.what == done.what && b.kind == done.kind && b.type == done.type &&
           b.members == done.members && b.level == level;
  });
  if (found != end)
    return &*found;
  if (used_ == all_.size())
    return nullptr;
  bucket& added = all_[used_++];
  added.what = done.what;
  added.kind = done.kind;
  added.type = done.type;
  added.members = done.members;
  added.level = level;
  return &added;
}

void buckets::add(const operation& done, std::uint64_t duration_ns, std::uint64_t now_ns) {
  bucket* b = place_of(done);
  if (!b) {
    ++without_place_;
    return;
  }
  if (++b->seen <= limits::warm_up)
    return;
  roll(*b, now_ns);
  const auto work = work_of(done);
  ++b->timed;
  b->sum_ns += duration_ns;
  b->bytes += done.bytes;
  b->work += work;
  trace::add(b->windows[0], duration_ns, work);
}

void buckets::turn(std::uint64_t now_ns) {
  for (std::size_t at = 0; at < used_; ++at)
    roll(all_[at], now_ns);
}

} // namespace troupe::trace
