#include "metrics/scrapes.hpp"

#include <algorithm>

namespace troupe::metrics {

void scrapes::read(instant at) {
  // Answers are delivered by several connections, in any order.
  recent_.insert(std::upper_bound(recent_.begin(), recent_.end(), at), at);
  if (recent_.size() > recent_max)
    recent_.pop_front();
}

duration scrapes::wait_after(instant end, duration most) const {
  duration interval{};
  for (std::size_t n = 1; n < recent_.size(); ++n)
    interval = std::max(interval, recent_[n] - recent_[n - 1]);
  if (interval == duration::zero())
    return {};
  const auto last_chance = recent_.back() + 2 * interval;
  return std::clamp(last_chance - end, duration::zero(), most);
}

} // namespace troupe::metrics
