#pragma once

#include "runtime/base/time.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::os {

/// The time of `times.size()` equal pieces of work: so many times the median. What interrupts a few
/// of them is no property of the device.
inline duration without_interruptions(std::vector<duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle * static_cast<duration::rep>(times.size());
}

} // namespace troupe::os
