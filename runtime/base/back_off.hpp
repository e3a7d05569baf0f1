#pragma once

#include "runtime/base/time.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

/// How long to wait between attempts: `first`, then twice as long each time, `most` at the longest.
///
///     first, 2·first, 4·first, …, most, most, …   reset() begins anew
class back_off {
 public:
  back_off(duration first, duration most) : first_(first), most_(most), next_(first) {}

  duration next() { return std::exchange(next_, std::min(2 * next_, most_)); }
  void reset() { next_ = first_; }

 private:
  duration first_;
  duration most_;
  duration next_;
};

} // namespace troupe
