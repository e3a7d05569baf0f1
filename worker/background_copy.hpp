#pragma once

#include "ckpt/copy/blocks.hpp"
#include "runtime/os/memory/copier.hpp"
#include "runtime/os/memory/write_watch.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::ckpt {

/// Copies what its owner goes on writing to, as it was when the copy began. A block is copied by
/// the thread that is first: the one that goes through all of them, or the one that is told that a
/// write waits there.
class background_copy {
 public:
  explicit background_copy(os::write_watch watch);
  /// Waits for the copy.
  ~background_copy();
  background_copy(const background_copy&) = delete;
  background_copy& operator=(const background_copy&) = delete;

  /// Returns as soon as everything is protected, or copied where it cannot be. `done` is called by
  /// another thread when all is copied. The pieces' memory stays mapped until then. Precondition:
  /// no copy is under way.
  void start(const std::vector<piece>& pieces, copier& at_once, std::function<void()> done);
  void wait();

 private:
  enum class block_state : std::uint8_t { waiting, copying, copied };

  void copy_all();
  void write_waits(char* address);
  /// False: the other thread does it, or has done it.
  bool copy_block(std::size_t index);

  os::write_watch watch_;
  block_plan plan_;
  std::unique_ptr<std::atomic<block_state>[]> states_;
  std::size_t states_size_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> done_; ///< there: a copy is under way
  bool stopping_ = false;
  /// Of threads: one that is told may be looking at the plan.
  std::mutex plan_mutex_;
  std::thread walker_, listener_;
};

} // namespace troupe::ckpt
