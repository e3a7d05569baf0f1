#include "probe/ring_blocks.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::probe {

namespace {

/// Values differ from element to element, so that bytes in a wrong place are noticed. Sums over
/// 10,000 members stay below 2^24, up to which a float counts exactly.
constexpr std::size_t pattern_length = 251;
constexpr std::uint32_t distinct_places = 1'000;

} // namespace

float ring_blocks::own(std::uint32_t place, std::size_t element) const {
  return static_cast<float>(element % pattern_length + place % distinct_places);
}

void ring_blocks::begin_reduce(std::uint64_t bytes) {
  values_.resize(bytes / sizeof(float));
  for (std::size_t i = 0; i < values_.size(); ++i)
    values_[i] = own(place_, i);
}

void ring_blocks::begin_gather(std::uint64_t bytes) {
  values_.assign(bytes / sizeof(float), -1);
  const auto mine = block(place_);
  for (auto i = mine.begin / sizeof(float); i < mine.end / sizeof(float); ++i)
    values_[i] = own(place_, i);
}

byte_range ring_blocks::block(std::int64_t b) const {
  const auto n = static_cast<std::int64_t>(members_);
  const auto which = static_cast<std::uint64_t>((b % n + n) % n);
  const auto all = std::uint64_t{values_.size()};
  return {sizeof(float) * (which * all / members_), sizeof(float) * ((which + 1) * all / members_)};
}

const std::uint8_t* ring_blocks::at(std::size_t byte) const {
  return reinterpret_cast<const std::uint8_t*>(values_.data()) + byte;
}

void ring_blocks::add(std::size_t at, const std::uint8_t* from, std::size_t bytes) {
  auto* to = values_.data() + at / sizeof(float);
  for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
    float value = 0;
    std::memcpy(&value, from + i * sizeof(float), sizeof value);
    to[i] += value;
  }
}

void ring_blocks::take(std::size_t at, const std::uint8_t* from, std::size_t bytes) {
  // A block of no values has no address either.
  std::copy(from, from + bytes, reinterpret_cast<std::uint8_t*>(values_.data()) + at);
}

bool ring_blocks::is_reduced() const {
  float places = 0;
  for (std::uint32_t p = 0; p < members_; ++p)
    places += static_cast<float>(p % distinct_places);
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i] !=
        static_cast<float>(members_) * static_cast<float>(i % pattern_length) + places)
      return false;
  return true;
}

bool ring_blocks::is_gathered() const {
  for (std::uint32_t p = 0; p < members_; ++p) {
    const auto its = block(p);
    for (auto i = its.begin / sizeof(float); i < its.end / sizeof(float); ++i)
      if (values_[i] != own(p, i))
        return false;
  }
  return true;
}

} // namespace troupe::probe
