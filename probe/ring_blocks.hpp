#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// What the members of a ring reduce and gather: floats of which it is known what must come out.
namespace troupe::probe {

/// A part of the values, as bytes.
struct byte_range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// The values of one member in one collective, in as many blocks as there are members.
///
/// A network or a memory that damages bytes is worse than one that is slow: so what comes out is
/// compared. All values are small whole numbers, whose sums are exact in any order.
class ring_blocks {
 public:
  ring_blocks(std::uint32_t members, std::uint32_t place) : members_(members), place_(place) {}

  /// This member's own values, `bytes` of them, for an all-reduce.
  void begin_reduce(std::uint64_t bytes);
  /// Its own block, and nothing in the others', for an all-gather.
  void begin_gather(std::uint64_t bytes);

  /// Of block number `b` modulo the number of members.
  byte_range block(std::int64_t b) const;
  const std::uint8_t* at(std::size_t byte) const;
  void add(std::size_t at, const std::uint8_t* from, std::size_t bytes);
  void take(std::size_t at, const std::uint8_t* from, std::size_t bytes);

  /// Whether this is what comes out.
  bool is_reduced() const;
  bool is_gathered() const;

 private:
  float own(std::uint32_t place, std::size_t element) const;

  const std::uint32_t members_, place_;
  std::vector<float> values_;
};

} // namespace troupe::probe
