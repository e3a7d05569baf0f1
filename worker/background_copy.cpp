#include "worker/background_copy.hpp"

#include "ckpt/copy/stream.hpp"

#include <algorithm>

namespace troupe::ckpt {

background_copy::background_copy(os::write_watch watch) : watch_(std::move(watch)) {
  walker_ = std::thread([this] { copy_all(); });
  listener_ = std::thread([this] { watch_.run([this](char* address) { write_waits(address); }); });
}

background_copy::~background_copy() {
  wait();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  walker_.join();
  watch_.stop();
  listener_.join();
}

void background_copy::start(const std::vector<piece>& pieces, copier& at_once,
                            std::function<void()> done) {
  auto plan = block_plan::divide(pieces);
  const auto blocks = plan.blocks.size();
  {
    const std::lock_guard lock(plan_mutex_);
    plan_ = std::move(plan);
    if (states_size_ < blocks) {
      states_ = std::make_unique<std::atomic<block_state>[]>(blocks);
      states_size_ = blocks;
    }
    for (std::size_t i = 0; i < blocks; ++i)
      states_[i] = block_state::waiting;
  }
  auto now = plan_.at_once;
  for (const auto& r : plan_.ranges) {
    if (watch_.protect(r.begin, static_cast<std::uint64_t>(r.end - r.begin)))
      continue;
    for (auto i = r.first_block; i < r.first_block + r.blocks; ++i) {
      now.push_back({plan_.blocks[i].to, plan_.blocks[i].from, plan_.blocks[i].bytes});
      states_[i] = block_state::copied;
    }
  }
  at_once.run(now);
  {
    const std::lock_guard lock(mutex_);
    done_ = std::move(done);
  }
  changed_.notify_all();
}

void background_copy::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !done_; });
}

void background_copy::copy_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || done_; });
    if (stopping_)
      return;
    lock.unlock();
    for (std::size_t i = 0; i < plan_.blocks.size(); ++i)
      copy_block(i);
    {
      // The one block that the other thread may still be copying.
      const std::lock_guard listener(plan_mutex_);
    }
    done_();
    lock.lock();
    done_ = nullptr;
    changed_.notify_all();
  }
}

void background_copy::write_waits(char* address) {
  const std::lock_guard lock(plan_mutex_);
  const auto index = plan_.find(address);
  if (!index) // of an earlier copy
    return watch_.release(address -
                              reinterpret_cast<std::uintptr_t>(address) % block_plan::page_bytes,
                          block_plan::page_bytes);
  // The thread that copies it lets its writers go on, but not those that began to wait after that.
  if (!copy_block(*index) && states_[*index] == block_state::copied)
    watch_.release(plan_.blocks[*index].from, plan_.blocks[*index].bytes);
}

bool background_copy::copy_block(std::size_t index) {
  auto expected = block_state::waiting;
  if (!states_[index].compare_exchange_strong(expected, block_state::copying))
    return false;
  const auto& b = plan_.blocks[index];
  stream_copy(b.to, b.from, b.bytes);
  states_[index] = block_state::copied;
  watch_.release(b.from, b.bytes);
  return true;
}

} // namespace troupe::ckpt
