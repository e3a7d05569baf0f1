#pragma once

#include "runtime/base/random.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe::actors::testing {

/// Decides what happens next: a choice in [0, bound). From a seed in property tests, from the
/// fuzzer's bytes in fuzz targets.
using fate = std::function<std::uint64_t(std::uint64_t bound)>;

inline fate seeded(std::uint64_t seed) {
  return
      [random = random_source(seed)](std::uint64_t bound) mutable { return random.below(bound); };
}

/// Reads its choices from bytes; when they are used up the choice is always the first, and
/// `exhausted` tells.
class bytes_of_fate {
 public:
  bytes_of_fate(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool exhausted() const { return at_ == end_; }
  std::uint64_t choose(std::uint64_t bound) {
    std::uint64_t value = 0;
    for (auto reach = std::uint64_t{1}; reach < bound && !exhausted(); reach <<= 8)
      value = value << 8 | *at_++;
    return value % bound;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

} // namespace troupe::actors::testing
