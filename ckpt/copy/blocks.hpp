#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::ckpt {

/// What is copied from where to where.
struct piece {
  char* to = nullptr;
  const char* from = nullptr;
  std::uint64_t bytes = 0;
};

/// How pieces are copied that their owner goes on writing to: what is copied at once, and in which
/// blocks the rest is, whose memory is protected until each has been copied.
struct block_plan {
  /// Memory of whole pages that belongs to one piece alone.
  struct range {
    char* begin = nullptr;
    char* end = nullptr;
    std::size_t first_block = 0, blocks = 0;
  };
  struct block {
    char* from = nullptr;
    char* to = nullptr;
    std::uint64_t bytes = 0;
  };

  std::vector<piece>
      at_once; ///< small pieces, and the ends of others, on pages that are shared with other data
  std::vector<range> ranges; ///< by address
  std::vector<block> blocks; ///< by address; cut where huge pages begin

  static constexpr std::uint64_t page_bytes = 4096;
  static constexpr std::uint64_t block_bytes = 2u << 20; ///< a huge page of x86-64
  /// Protecting costs a system call for each piece: smaller ones are copied at once.
  static constexpr std::uint64_t least_bytes = 1u << 20;

  /// Pieces do not overlap.
  static block_plan divide(const std::vector<piece>& pieces);
  /// The block that holds an address.
  std::optional<std::size_t> find(const char* address) const;
};

} // namespace troupe::ckpt
