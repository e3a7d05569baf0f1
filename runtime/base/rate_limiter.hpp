#pragma once

#include "runtime/base/time.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

/// When so many bytes may be sent, so that in the long run there are at most `bytes_per_second`,
/// and at most `burst` at once after a rest. Pure: it is told the time.
class rate_limiter {
 public:
  /// 0 bytes per second: there is no bound.
  rate_limiter(std::uint64_t bytes_per_second, std::uint64_t burst)
      : rate_(bytes_per_second), burst_(burst) {}

  /// Not before `now`. More than the burst may be sent once all of that is saved up.
  instant may_send(instant now, std::uint64_t bytes) const {
    if (rate_ == 0)
      return now;
    return std::max(now, paid_until_ + time_for(std::min(bytes, burst_)) - time_for(burst_));
  }

  void sent(instant now, std::uint64_t bytes) {
    if (rate_ != 0)
      paid_until_ = std::max(paid_until_, now) + time_for(bytes);
  }

 private:
  duration time_for(std::uint64_t bytes) const {
    return std::chrono::duration_cast<duration>(
        std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate_)));
  }

  const std::uint64_t rate_, burst_;
  /// When all that was sent would have been, at the rate; the burst may be ahead of it.
  instant paid_until_{};
};

} // namespace troupe
