#pragma once

#include "runtime/base/time.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <deque>
#include <mutex>

namespace troupe::os::testing {

/// What a callback brings, for a thread that waits.
template<class T>
class box {
 public:
  void put(T value) {
    const std::lock_guard held(lock_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock held(lock_);
    REQUIRE(changed_.wait_for(held, 30s, [this] { return !values_.empty(); }));
    auto first = std::move(values_.front());
    values_.pop_front();
    return first;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

} // namespace troupe::os::testing
