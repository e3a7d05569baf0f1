#include "runtime/os/memory/huge_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE // Linux 6.1
#define MADV_COLLAPSE 25
#endif
#ifndef MAP_FIXED_NOREPLACE // Linux 4.17; older ones take it for a wish
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace troupe::os {

namespace {

/// Where the kernel would map it now.
char* next_choice(int descriptor, std::uint64_t bytes) {
  auto* const at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE, descriptor, 0);
  if (at == MAP_FAILED)
    return nullptr;
  munmap(at, bytes);
  return static_cast<char*>(at);
}

} // namespace

std::uint64_t move_to_huge_pages(char* begin, std::uint64_t bytes, const std::atomic<bool>& stop) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const auto skipped = (huge_page_bytes - address % huge_page_bytes) % huge_page_bytes;
  std::uint64_t moved = 0;
  for (auto at = skipped; at + huge_page_bytes <= bytes && !stop; at += huge_page_bytes)
    if (madvise(begin + at, huge_page_bytes, MADV_COLLAPSE) == 0)
      moved += huge_page_bytes;
  return moved;
}

aligned_choice::aligned_choice(int descriptor, std::uint64_t bytes) {
  if (bytes < huge_page_bytes)
    return;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto whole = (bytes + page - 1) / page * page;
  for (auto& occupied : occupied_) {
    auto* const at = next_choice(descriptor, whole);
    const auto over = reinterpret_cast<std::uintptr_t>(at) % huge_page_bytes;
    made_ = at != nullptr && over == 0;
    if (at == nullptr || made_)
      return;
    // No other mapping is replaced: one that has come there since makes this fail.
    auto* const end =
        mmap(at + whole - over, over, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (end == MAP_FAILED)
      return;
    occupied = {static_cast<char*>(end), over};
  }
}

aligned_choice::~aligned_choice() {
  for (const auto& occupied : occupied_)
    if (occupied.begin != nullptr)
      munmap(occupied.begin, occupied.bytes);
}

} // namespace troupe::os
