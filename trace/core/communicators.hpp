#pragma once

#include "trace/limits.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::trace {

/// NCCL's communicators of this process, found by handle without a lock.
///
/// A handle says nothing to another process, so each communicator has a name that is the same at
/// all its members: a hash of the unique id that they were given, or of the parent's name, the
/// color and the number of the split. Rows are written by one thread at a time and read by any.
class communicators {
 public:
  struct row {
    std::atomic<const void*> handle; ///< null: never used; `gone`: free again
    std::atomic<std::uint64_t> name; ///< 0: unknown
    std::atomic<std::uint32_t> members;
    std::atomic<std::uint32_t> rank;
    std::atomic<std::uint64_t> sequence; ///< collectives so far
    std::atomic<std::uint64_t> splits;   ///< communicators made of it so far
    std::atomic<std::uint32_t> page_row; ///< in the page of progress, plus 1; 0: none
  };
  static constexpr std::size_t none = limits::communicators_max;

  /// `none`: it is not known.
  std::size_t find(const void* handle) const;
  /// `none`: there are too many. The caller makes sure that no other thread adds or removes.
  std::size_t add(const void* handle, std::uint64_t name, std::uint32_t members,
                  std::uint32_t rank);
  void remove(const void* handle);
  row& at(std::size_t index) { return rows_[index]; }
  const row& at(std::size_t index) const { return rows_[index]; }

 private:
  std::array<row, limits::communicators_max> rows_;
};

std::uint64_t name_of_id(const char* id, std::size_t bytes);
std::uint64_t name_of_part(std::uint64_t parent, std::uint64_t split, std::int64_t color);

} // namespace troupe::trace
