#include "runtime/os/memory/copier.hpp"

#include "ckpt/copy/stream.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::ckpt {

namespace {

/// Of a thread's turn: long enough that the next is no cost, short enough that all end together.
constexpr std::uint64_t turn_bytes = 4u << 20;
/// Below this a piece may be read again soon, and a line that is written whole gains nothing; but
/// of a copy that no cache would hold anyway only pieces that are too short for it are not worth
/// it.
constexpr std::uint64_t stream_from = 256u << 10, stream_from_if_much = 4u << 10;

/// Those this thread may run on: glibc asks for its affinity.
unsigned processors() {
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace

copier::copier(unsigned threads) {
  const auto all = threads != 0 ? threads : std::min(processors(), threads_max);
  for (unsigned i = 1; i < all; ++i)
    others_.emplace_back([this] { wait_for_work(); });
}

copier::~copier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begun_.notify_all();
  for (auto& t : others_)
    t.join();
}

void copier::run(const std::vector<piece>& pieces) {
  begins_.clear();
  total_ = 0;
  for (const auto& p : pieces) {
    begins_.push_back(total_);
    total_ += p.bytes;
  }
  pieces_ = &pieces;
  next_ = 0;
  const auto helped = total_ > turn_bytes;
  stream_from_ = helped ? stream_from_if_much : stream_from;
  if (helped) {
    {
      const std::lock_guard lock(mutex_);
      ++round_;
      busy_ = others_.size();
    }
    begun_.notify_all();
  }
  work();
  if (helped) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return busy_ == 0; });
  }
}

void copier::wait_for_work() {
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begun_.wait(lock, [&] { return stopping_ || round_ != done; });
    if (stopping_)
      return;
    done = round_;
    lock.unlock();
    work();
    lock.lock();
    if (--busy_ == 0)
      ended_.notify_one();
  }
}

void copier::work() {
  for (;;) {
    auto at = next_.fetch_add(turn_bytes);
    if (at >= total_)
      return;
    const auto end = std::min(at + turn_bytes, total_);
    auto i = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), at) -
                                      begins_.begin() - 1);
    for (; at < end; ++i) {
      const auto& p = (*pieces_)[i];
      const auto skip = at - begins_[i];
      const auto bytes = std::min(p.bytes - skip, end - at);
      if (p.bytes >= stream_from_)
        stream_copy(p.to + skip, p.from + skip, bytes);
      else if (bytes != 0)
        std::memcpy(p.to + skip, p.from + skip, bytes);
      at += bytes;
    }
  }
}

} // namespace troupe::ckpt
