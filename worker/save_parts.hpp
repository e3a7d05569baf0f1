#pragma once

#include "runtime/base/result.hpp"

#include <functional>
#include <mutex>
#include <utility>

namespace troupe::ckpt {

/// The parts of a save that may end behind its call, in any order and by other threads: what is
/// copied here, and what the caller fills: places that were left, and a last file. The thread that
/// ends the last one ends the save.
class save_parts {
 public:
  using finisher = std::function<result<void>(const result<void>& arrived)>;

  /// Precondition: no save is under way.
  void begin(bool some_left, bool last_file, finisher finish) {
    const std::lock_guard lock(mutex_);
    copying_ = true;
    filling_ = some_left;
    adding_ = last_file;
    arrived_ = {};
    finish_ = std::move(finish);
  }
  void copied() {
    const std::lock_guard lock(mutex_);
    copying_ = false;
    finish_if_ended();
  }
  /// Without a save that waits for it nothing happens.
  void filled(const result<void>& how) {
    const std::lock_guard lock(mutex_);
    if (!filling_)
      return;
    filling_ = false;
    arrived(how);
  }
  void added(const result<void>& how) {
    const std::lock_guard lock(mutex_);
    if (!adding_)
      return;
    adding_ = false;
    arrived(how);
  }
  /// How the last save ended, told once. `overloaded` while the caller has not filled its parts.
  result<void> ended() {
    const std::lock_guard lock(mutex_);
    if (filling_)
      return failure(errc::overloaded, "tensors of the last save have not arrived yet");
    if (adding_)
      return failure(errc::overloaded, "the last save waits for its last file");
    return std::exchange(ended_, result<void>{});
  }

 private:
  void arrived(const result<void>& how) {
    if (arrived_)
      arrived_ = how;
    finish_if_ended();
  }
  void finish_if_ended() {
    if (!copying_ && !filling_ && !adding_)
      ended_ = std::exchange(finish_, nullptr)(arrived_);
  }

  std::mutex mutex_;
  bool copying_ = false, filling_ = false, adding_ = false;
  result<void> arrived_, ended_;
  finisher finish_;
};

} // namespace troupe::ckpt
