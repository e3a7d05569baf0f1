#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// The exchanges of a ring, in order. In each, a member gives a block to the next one and takes
/// one from the one before it.
///
/// An all-reduce of n members is n − 1 exchanges in which blocks are added up, and n − 1 in which
/// the sums go around; an all-gather is n − 1 in which blocks go around. Both move the least that
/// any algorithm must at each member: 2(n − 1)/n and (n − 1)/n of the message.
namespace troupe::probe {

struct exchange {
  enum class kind { lap, add, take };
  kind what = kind::lap; ///< `lap`: empty, and only passed on
  std::size_t size = 0;  ///< which of the sizes
  bool gathers = false;  ///< a part of an all-gather, else of an all-reduce
  std::uint64_t collective = 0;
  /// Blocks, modulo the number of members.
  std::int64_t gives = 0, takes = 0;
  bool first = false, last = false; ///< of its collective
  /// Of its size: the last one of all all-reduces, of all all-gathers.
  bool last_of_kind = false;
};

class ring_program {
 public:
  ring_program(std::uint32_t members, std::uint32_t place, std::uint32_t laps, std::size_t sizes,
               std::uint32_t repeats)
      : n_(members), place_(place), laps_(laps), sizes_(sizes), repeats_(repeats) {}

  std::uint64_t length() const { return laps_ + sizes_ * of_one_size(); }
  /// What a member takes in all of it, of messages of these sizes.
  std::uint64_t bytes(const std::vector<std::uint64_t>& of_sizes) const;
  /// 0 ≤ `number` < length().
  exchange at(std::uint64_t number) const;

 private:
  std::uint64_t of_one_size() const { return std::uint64_t{3} * repeats_ * (n_ - 1); }

  const std::uint32_t n_, place_, laps_;
  const std::size_t sizes_;
  const std::uint32_t repeats_;
};

} // namespace troupe::probe
