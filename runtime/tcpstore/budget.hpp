#pragma once

#include "runtime/base/invariant.hpp"

#include <cstddef>

namespace troupe::tcpstore {

/// How many bytes a store may remember, and how many it does. What things cost beyond their bytes
/// is estimated, generously.
class budget {
 public:
  /// A node of a tree or list with a short string in it.
  static constexpr std::size_t node_cost = 128;

  explicit budget(std::size_t limit) : limit_(limit) {}

  /// False, and nothing taken, if there is not that much left.
  bool take(std::size_t bytes) {
    if (bytes > limit_ - used_)
      return false;
    used_ += bytes;
    return true;
  }
  void give(std::size_t bytes) {
    invariant(bytes <= used_, "more memory is given back than was taken");
    used_ -= bytes;
  }
  /// In place of `before` bytes, `after`.
  bool change(std::size_t before, std::size_t after) {
    if (after > before)
      return take(after - before);
    give(before - after);
    return true;
  }

  std::size_t used() const { return used_; }
  std::size_t limit() const { return limit_; }

 private:
  std::size_t limit_;
  std::size_t used_ = 0;
};

} // namespace troupe::tcpstore
