#include "runtime/os/memory/huge_pages.hpp"

#include <sys/mman.h>

#ifndef MADV_COLLAPSE // Linux 6.1
#define MADV_COLLAPSE 25
#endif

namespace troupe::os {

namespace {
constexpr std::uint64_t huge_page_bytes = 2u << 20; // of x86-64, and of aarch64 with small pages
}

std::uint64_t move_to_huge_pages(char* begin, std::uint64_t bytes, const std::atomic<bool>& stop) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const auto skipped = (huge_page_bytes - address % huge_page_bytes) % huge_page_bytes;
  std::uint64_t moved = 0;
  for (auto at = skipped; at + huge_page_bytes <= bytes && !stop; at += huge_page_bytes)
    if (madvise(begin + at, huge_page_bytes, MADV_COLLAPSE) == 0)
      moved += huge_page_bytes;
  return moved;
}

} // namespace troupe::os
