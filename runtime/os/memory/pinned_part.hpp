#pragma once

#include <cstdint>
#include <functional>

namespace troupe::os {

/// How memory is made known to a device's driver, which then reads and writes it by itself.
struct pinning {
  /// False: the driver refuses.
  std::function<bool(char* begin, std::uint64_t bytes)> pin;
  std::function<void(char* begin)> unpin;
};

/// The begin of a file's memory, pinned. A driver holds on to the pages that it was shown: what is
/// cut off the file and made again are other pages, and what a device writes to the old ones is
/// lost. So the end of what is used stays unpinned, and may change by as much.
class pinned_part {
 public:
  /// What is left unpinned at least, and at most before more is pinned.
  static constexpr std::uint64_t end_bytes = 2u << 20, behind_bytes = 32u << 20;

  pinned_part() = default;
  pinned_part(const pinned_part&) = delete;
  pinned_part& operator=(const pinned_part&) = delete;
  ~pinned_part() { unpin(); }

  /// Pins what may be of memory of which so many bytes are used from now on. Nothing changes if
  /// nearly all of that is pinned. False: the driver refuses.
  bool pin(char* begin, std::uint64_t bytes, const pinning& by);
  /// Before memory behind so many bytes is cut off, or with 0 before all of it moves.
  void cut(std::uint64_t bytes);
  /// From the begin on.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void unpin();

  char* begin_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::function<void(char*)> unpin_;
};

} // namespace troupe::os
