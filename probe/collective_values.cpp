#include "probe/collective_values.hpp"

#include <algorithm>

namespace troupe::probe {

namespace {

/// Up to here a float counts exactly.
constexpr std::size_t exact_max = std::size_t{1} << 24;
/// A prime: no block of a message is a multiple of it.
constexpr std::size_t distinct_max = 251;

} // namespace

collective_values::collective_values(std::uint32_t ranks)
    : ranks_(ranks), distinct_(std::clamp<std::size_t>(exact_max / ranks, 2, distinct_max)) {
  for (std::size_t element = 0; element < distinct_; ++element) {
    std::size_t sum = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      sum += value(rank, element);
    sums_.push_back(static_cast<float>(sum));
  }
}

std::vector<float> collective_values::own(std::uint32_t rank, std::size_t count) const {
  std::vector<float> values(count);
  for (std::size_t element = 0; element < count; ++element)
    values[element] = static_cast<float>(value(rank, element));
  return values;
}

bool collective_values::is_reduced(const float* values, std::size_t count) const {
  for (std::size_t element = 0; element < count; ++element)
    if (values[element] != sums_[element % distinct_])
      return false;
  return true;
}

bool collective_values::is_gathered(const float* values, std::size_t each) const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    for (std::size_t element = 0; element < each; ++element)
      if (*values++ != static_cast<float>(value(rank, element)))
        return false;
  return true;
}

} // namespace troupe::probe
