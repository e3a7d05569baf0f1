#include "probe/known_product.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/random.hpp"

namespace troupe::probe {

namespace {

/// No error can hide behind a zero, and none of two columns that have changed places.
double weight(std::size_t column) {
  return static_cast<double>(column + 1);
}

/// Sixteen of each draw.
std::vector<std::int8_t> entries(std::size_t count, random_source& random) {
  std::vector<std::int8_t> all(count);
  std::uint64_t draw = 0;
  for (std::size_t at = 0; at < count; ++at, draw >>= 4) {
    if (at % 16 == 0)
      draw = random.next();
    all[at] = static_cast<std::int8_t>(static_cast<int>(draw % 16 % 5) - 2);
  }
  return all;
}

/// matrix·vector; `Entry` is int8_t or float.
template<class Entry>
std::vector<double> times(const Entry* matrix, const std::vector<double>& vector) {
  const auto n = vector.size();
  std::vector<double> sums(n);
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t row = 0; row < n; ++row)
      sums[row] += static_cast<double>(matrix[column * n + row]) * vector[column];
  return sums;
}

std::vector<double> weights(std::size_t n) {
  std::vector<double> all(n);
  for (std::size_t column = 0; column < n; ++column)
    all[column] = weight(column);
  return all;
}

} // namespace

known_product::known_product(std::size_t n) : n_(n) {
  invariant(n > 0 && n <= size_max, "a product of this size is not exact");
  random_source random(n);
  left_ = entries(n * n, random);
  right_ = entries(n * n, random);
  times_r_ = times(left_.data(), times(right_.data(), weights(n)));
}

double known_product::operations() const {
  const auto n = static_cast<double>(n_);
  return 2 * n * n * n;
}

bool known_product::is(const float* product) const {
  return times(product, weights(n_)) == times_r_;
}

} // namespace troupe::probe
