#include "worker/slot_memory.hpp"

#include "runtime/os/memory/huge_pages.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::ckpt {

std::uint64_t with_slack(std::uint64_t bytes) {
  return bytes + std::min(bytes / 64, UINT64_MAX - bytes - (1u << 20)) + (1u << 20);
}

std::uint64_t slot_memory::backed() const {
  return std::accumulate(
      memory_.begin(), memory_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const os::shared_memory& m) { return sum + m.backed(); });
}

std::uint64_t slot_memory::missing(std::size_t slot, std::uint64_t bytes) const {
  return bytes - std::min(bytes, memory_[slot].backed());
}

slot_set slot_memory::with_pages() const {
  slot_set found;
  for (std::size_t i = 0; i < memory_.size(); ++i)
    found[i] = memory_[i].backed() != 0;
  return found;
}

result<void> slot_memory::enlarge(std::size_t slot, std::uint64_t bytes) {
  auto& memory = memory_[slot];
  if (memory.bytes() >= bytes)
    return memory.show(memory.bytes());
  stop_filling();
  pinned_[slot].cut(0);
  return memory.grow(with_slack(bytes));
}

result<void> slot_memory::clear(std::size_t slot) {
  stop_filling();
  pinned_[slot].cut(0);
  return memory_[slot].clear();
}

void slot_memory::fill(std::vector<std::size_t> which, std::uint64_t bytes, const slots& words,
                       std::vector<bytes_at> storages, filling_observer observer) {
  stop_ = false;
  filled_ = {};
  filling_ = true;
  for (const auto slot : which)
    fills_up_to_[slot] = bytes;
  filler_ = std::thread([this, which = std::move(which), bytes, &words,
                         storages = std::move(storages), observer = std::move(observer)] {
    const auto after_step = [&] {
      if (!observer.after_step())
        stop_ = true;
    };
    for (std::size_t i = 0; i < which.size() && filled_; ++i)
      filled_ = memory_[which[i]].populate(bytes, stop_, after_step);
    filling_ = false;
    observer.ended();
    for (std::size_t i = 0; i < which.size() && filled_ && !stop_; ++i)
      if (words.word(which[i]).state == slot_state::empty)
        pin(which[i], bytes);
    // (To their owner they are not constant.)
    for (const auto& s : storages)
      if (s.data != nullptr)
        os::move_to_huge_pages(const_cast<char*>(s.data), s.bytes, stop_);
  });
}

void slot_memory::stop_filling() {
  stop_ = true;
  if (!filler_.joinable())
    return;
  filler_.join();
  fills_up_to_.fill(0);
}

result<void> slot_memory::filled() {
  if (filler_.joinable())
    filler_.join();
  return filled_;
}

void slot_memory::pin_by(os::pinning how) {
  stop_filling();
  pinning_ = std::move(how);
}

void slot_memory::unpin() {
  stop_filling();
  for (auto& one : pinned_)
    one.cut(0);
  pinning_.reset();
}

void slot_memory::pin(std::size_t slot, std::uint64_t bytes) {
  if (pinning_ && !pinned_[slot].pin(memory_[slot].data(), bytes, *pinning_))
    pinning_
        .reset(); // the pinning itself has told why; what comes is not pinned, which takes longer
}

} // namespace troupe::ckpt
