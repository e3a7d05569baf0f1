#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// What the devices of a group reduce and gather: floats of which it is known what must come out.
namespace troupe::probe {

/// A network, a link between devices or a memory that damages bytes is worse than a slow one: so
/// what comes out is compared. Values differ from element to element and from rank to rank, so that
/// bytes in a wrong place are noticed. They are whole numbers that are small enough for their sums
/// over all ranks to be exact in any order.
class collective_values {
 public:
  explicit collective_values(std::uint32_t ranks);

  /// What this rank gives, from its first element on.
  std::vector<float> own(std::uint32_t rank, std::size_t count) const;
  /// Whether this came out of an all-reduce.
  bool is_reduced(const float* values, std::size_t count) const;
  /// Whether this came out of an all-gather, `each` elements of each rank.
  bool is_gathered(const float* values, std::size_t each) const;

 private:
  std::size_t value(std::uint32_t rank, std::size_t element) const {
    return (element + rank) % distinct_;
  }

  const std::uint32_t ranks_;
  const std::size_t distinct_;
  std::vector<float> sums_; ///< by the element modulo `distinct_`
};

} // namespace troupe::probe
