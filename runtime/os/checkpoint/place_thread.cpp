#include "runtime/os/checkpoint/place_thread.hpp"

#include "runtime/os/storage/posix_storage.hpp"

#include <utility>

namespace troupe::os {

place_thread::place_thread(const std::string& place, const node_name& node,
                           std::shared_ptr<ckpt::steps_saved_again> saved)
    : writer_(std::make_unique<posix_storage>(place), node, std::move(saved)),
      thread_([this] { run(); }) {}

place_thread::~place_thread() {
  {
    const std::lock_guard held(lock_);
    stop_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void place_thread::ask(work what) {
  {
    const std::lock_guard held(lock_);
    now_.push_back(std::move(what));
  }
  asked_.notify_one();
}

void place_thread::ask_later(work what) {
  {
    const std::lock_guard held(lock_);
    later_.push_back(std::move(what));
  }
  asked_.notify_one();
}

bool place_thread::idle() const {
  const std::lock_guard held(lock_);
  return !busy_ && now_.empty() && later_.empty();
}

void place_thread::run() {
  std::unique_lock held(lock_);
  for (;;) {
    asked_.wait(held, [this] { return stop_ || !now_.empty() || !later_.empty(); });
    if (stop_)
      now_.clear();
    if (stop_ && later_.empty())
      return;
    auto& from = now_.empty() ? later_ : now_;
    const auto next = std::move(from.front());
    from.pop_front();
    busy_ = true;
    held.unlock();
    next(writer_);
    held.lock();
    busy_ = false;
  }
}

} // namespace troupe::os
