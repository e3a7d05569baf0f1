#pragma once

#include "runtime/base/result.hpp"

#include <functional>
#include <mutex>
#include <utility>

namespace troupe::ckpt {

/// The two parts of a save that may end behind its call, in any order and by other threads: what is
/// copied here, and what the caller fills. The thread that ends the last one ends the save.
class save_parts {
 public:
  using finisher = std::function<result<void>(const result<void>& arrived)>;

  /// Precondition: no save is under way.
  void begin(bool some_left, finisher finish) {
    const std::lock_guard lock(mutex_);
    copying_ = true;
    filling_ = some_left;
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
    arrived_ = how;
    finish_if_ended();
  }
  /// How the last save ended, told once. `overloaded` while the caller has not filled its part.
  result<void> ended() {
    const std::lock_guard lock(mutex_);
    if (filling_)
      return failure(errc::overloaded, "tensors of the last save have not arrived yet");
    return std::exchange(ended_, result<void>{});
  }

 private:
  void finish_if_ended() {
    if (!copying_ && !filling_)
      ended_ = std::exchange(finish_, nullptr)(arrived_);
  }

  std::mutex mutex_;
  bool copying_ = false, filling_ = false;
  result<void> arrived_, ended_;
  finisher finish_;
};

} // namespace troupe::ckpt
