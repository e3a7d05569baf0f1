#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// A product of matrices of which one can tell whether it is right without computing it again.
///
/// A device that computes wrongly now and then is worse than one that fails: training goes on, and
/// its loss is a little off. A probe that only measures time calls such a device good.
///
/// All entries are small whole numbers, so each sum is exact in float, in whatever order a device
/// adds: one wrong bit is a wrong product. Compared is C·r with A·(B·r) for a fixed vector r, which
/// takes n² steps where the product takes n³.
namespace troupe::probe {

class known_product {
 public:
  /// Of n columns and n rows, by columns. n: at most `size_max`.
  explicit known_product(std::size_t n);

  std::size_t size() const { return n_; }
  /// Entries from -2 to 2, which bfloat16 and half have exactly.
  const std::vector<std::int8_t>& left() const { return left_; }
  const std::vector<std::int8_t>& right() const { return right_; }
  double operations() const;

  /// Whether these n² values, by columns, are left·right.
  bool is(const float* product) const;

  /// Sums of products of two entries are whole numbers that float has, up to 2^24, and those that
  /// the comparison adds are ones that double has, up to 2^53.
  static constexpr std::size_t size_max = std::size_t{1} << 16;

 private:
  std::size_t n_;
  std::vector<std::int8_t> left_, right_;
  std::vector<double> times_r_; ///< left·(right·r)
};

} // namespace troupe::probe
