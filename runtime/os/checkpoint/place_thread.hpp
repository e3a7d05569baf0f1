#pragma once

#include "ckpt/catalog/place_writer.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::os {

/// For threads.
class saved_again_by_threads final : public ckpt::steps_saved_again {
 public:
  void alone(const std::function<void()>& what) override {
    const std::lock_guard held(lock_);
    what();
  }

 private:
  std::mutex lock_;
};

/// A thread that works at one place of storage, one thing after the other: a disk that is slow or
/// hangs holds up this thread and nothing else. Its work has the place to itself, the object.
class place_thread {
 public:
  using work = std::function<void(ckpt::place_writer&)>;

  /// Those of one place share `saved`.
  place_thread(const std::string& place, const node_name& node,
               std::shared_ptr<ckpt::steps_saved_again> saved);
  /// Ends what is under way, and does what was left for later; what else has not begun is dropped.
  ~place_thread();
  place_thread(const place_thread&) = delete;
  place_thread& operator=(const place_thread&) = delete;

  void ask(work what);
  /// When there is nothing else to do.
  void ask_later(work what);
  /// Nothing is under way or asked for.
  bool idle() const;

 private:
  void run();

  ckpt::place_writer writer_;
  mutable std::mutex lock_;
  std::condition_variable asked_;
  std::deque<work> now_, later_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

} // namespace troupe::os
