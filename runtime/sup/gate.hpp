#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace troupe::sup {

/// Holds an actor's events back until it is ready for them, then lets them through in order.
class gate {
 public:
  void pass(std::function<void()> event) {
    if (open_)
      event();
    else
      waiting_.push_back(std::move(event));
  }

  void open() {
    open_ = true;
    // An event may not close the gate again, so indices suffice even if one adds to the list.
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      waiting_[i]();
    waiting_.clear();
  }

 private:
  bool open_ = false;
  std::vector<std::function<void()>> waiting_;
};

} // namespace troupe::sup
