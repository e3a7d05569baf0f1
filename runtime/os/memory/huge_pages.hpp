#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace troupe::os {

constexpr std::uint64_t huge_page_bytes = 2u << 20; ///< x86-64's, and aarch64's with small pages

/// Moves memory that is there already onto huge pages, where the system has some: what is done page
/// by page to it is then done five hundred times as fast. Takes about as long as a copy of it; may
/// be used meanwhile. Returns how many bytes are on huge pages; 0 before Linux 6.1. Ends early when
/// `stop` becomes true. Memory that is not there any more is left alone.
///
/// Of a file's memory only what is mapped at a multiple of `huge_page_bytes`, counted from the
/// file's begin, and in each of those some of its pages must be there.
std::uint64_t move_to_huge_pages(char* begin, std::uint64_t bytes, const std::atomic<bool>& stop);

/// Room for a mapping that a library is about to make of a file, with the kernel choosing the
/// place. The kernel maps 2 MiB at once only where the mapping lies at
/// a multiple of that; mapping them in sixteens of 4 KiB takes some twenty times as long. It takes
/// the highest place that is free, so the end of that place is occupied, while this lives, by as
/// much as it takes to make the next choice a multiple of 2 MiB. It costs no memory. A thread that
/// maps something meanwhile may spoil it: then the mapping is as slow as any.
class aligned_choice {
 public:
  /// For a mapping of so many bytes of this file.
  aligned_choice(int descriptor, std::uint64_t bytes);
  aligned_choice(const aligned_choice&) = delete;
  aligned_choice& operator=(const aligned_choice&) = delete;
  ~aligned_choice();

  /// Whether the kernel's next choice is such a place, as far as can be seen.
  bool made() const { return made_; }

 private:
  struct area {
    char* begin = nullptr;
    std::uint64_t bytes = 0;
  };
  std::array<area, 4> occupied_; ///< more than one if the first ended in another free place
  bool made_ = false;
};

} // namespace troupe::os
