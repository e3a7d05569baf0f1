#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <deque>

namespace troupe::metrics {

/// When a monitoring system has read the page. The result of a job is on the page only after the
/// job's end, so the process that has it stays until it was read once more, but only where a
/// scraper reads regularly: a run without one ends at once.
class scrapes {
 public:
  /// An answer was delivered that shows the state of `at`.
  void read(instant at);

  bool read_since(instant end) const { return !recent_.empty() && recent_.back() >= end; }

  /// How long after `end` to wait for the next read, `most` at most. The interval of a scraper is
  /// the longest gap between recent reads, so that several scrapers count as one; two intervals
  /// after the last read it has come once more, unless it failed. Zero: nothing reads regularly, or
  /// the last read is longer ago than that.
  duration wait_after(instant end, duration most) const;

 private:
  static constexpr std::size_t recent_max = 8;
  std::deque<instant> recent_; ///< oldest first
};

} // namespace troupe::metrics
