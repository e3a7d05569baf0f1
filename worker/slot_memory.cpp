#include "worker/slot_memory.hpp"

#include "runtime/os/memory/huge_pages.hpp"
#include "runtime/os/memory/memory_room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::ckpt {

namespace {

/// Pickles of the same structure differ by a few bytes from save to save.
std::uint64_t with_slack(std::uint64_t bytes) {
  return bytes + bytes / 64 + (1u << 20);
}

/// Rounded up, so that a message never says that 0 MiB are missing.
std::uint64_t mib(std::uint64_t bytes) {
  return (bytes >> 20) + 1;
}

tl::unexpected<error> too_little(std::uint64_t bytes, const os::memory_room& room) {
  return failure(
      errc::refused,
      fmt::format("an image of this state needs {} MiB of memory and only {} are left: {}",
                  mib(bytes), room.bytes >> 20, room.bound));
}

} // namespace

/// What snapshots have already: it is theirs to use again.
std::uint64_t slot_memory::bytes() const {
  return std::accumulate(
      memory_.begin(), memory_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const os::shared_memory& m) { return sum + m.bytes(); });
}

result<std::uint64_t> slot_memory::room_for(std::uint64_t bytes) const {
  const auto room = os::find_memory_room();
  if (!room)
    return tl::make_unexpected(room.error());
  if (room->bytes + this->bytes() < bytes)
    return too_little(bytes, *room);
  return (room->bytes + this->bytes()) / std::max<std::uint64_t>(bytes, 1);
}

result<void> slot_memory::fit(std::size_t slot, std::uint64_t bytes) {
  auto& memory = memory_[slot];
  if (memory.bytes() >= bytes)
    return memory.show(memory.bytes());
  stop_filling();
  const auto room = os::find_memory_room();
  if (!room)
    return tl::make_unexpected(room.error());
  if (room->bytes + memory.bytes() < bytes)
    return too_little(bytes, *room);
  pinned_[slot].cut(0);
  return memory.grow(with_slack(bytes));
}

void slot_memory::fill(std::uint64_t bytes, const slots& words, std::vector<bytes_at> storages) {
  stop_ = false;
  filled_ = {};
  filler_ = std::thread([this, bytes, &words, storages = std::move(storages)] {
    for (std::size_t i = 0; i < memory_.size() && filled_; ++i)
      if (memory_[i])
        filled_ = memory_[i].populate(bytes, stop_);
    for (std::size_t i = 0; i < memory_.size() && filled_ && !stop_; ++i)
      if (memory_[i].bytes() >= bytes && words.word(i).state == slot_state::empty)
        pin(i, bytes);
    // (To their owner they are not constant.)
    for (const auto& s : storages)
      if (s.data != nullptr)
        os::move_to_huge_pages(const_cast<char*>(s.data), s.bytes, stop_);
  });
}

void slot_memory::stop_filling() {
  stop_ = true;
  if (filler_.joinable())
    filler_.join();
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

void slot_memory::pin(std::size_t slot, std::uint64_t bytes) {
  if (pinning_ && !pinned_[slot].pin(memory_[slot].data(), bytes, *pinning_))
    pinning_
        .reset(); // the pinning itself has told why; what comes is not pinned, which takes longer
}

} // namespace troupe::ckpt
