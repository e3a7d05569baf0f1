#include "runtime/os/memory/pinned_part.hpp"

#include "runtime/os/memory/huge_pages.hpp"

#include <thread>
#include <utility>

namespace troupe::os {

namespace {

std::uint64_t may_be_pinned(std::uint64_t used) {
  const auto whole = used / huge_page_bytes * huge_page_bytes;
  return whole <= pinned_part::end_bytes ? 0 : whole - pinned_part::end_bytes;
}

} // namespace

bool pinned_part::pin(char* begin, std::uint64_t bytes, const pinning& by) {
  const auto most = may_be_pinned(bytes);
  if (begin == begin_ && most <= bytes_ + behind_bytes)
    return true;
  unpin();
  if (most == 0)
    return true;
  bool done = false;
  // A driver leaves its last error with the thread that met it, where a training's next call would
  // find it.
  std::thread([&done, &by, begin, most] { done = by.pin(begin, most); }).join();
  if (!done)
    return false;
  begin_ = begin;
  bytes_ = most;
  unpin_ = by.unpin;
  return true;
}

void pinned_part::cut(std::uint64_t bytes) {
  if (bytes < bytes_)
    unpin();
}

void pinned_part::unpin() {
  if (bytes_ == 0)
    return;
  std::thread([this] { unpin_(begin_); }).join();
  begin_ = nullptr;
  bytes_ = 0;
}

} // namespace troupe::os
