#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/pinned_part.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace troupe::ckpt {

struct bytes_at {
  const char* data = nullptr;
  std::uint64_t bytes = 0;
};

/// The memory of a training process's slots: as much as a snapshot needs, there before it is
/// needed, and known to a device's driver.
///
/// A page of new memory takes longer to touch for the first time than to copy to, and a driver
/// longer to pin it. So a thread does both beforehand, while training computes; what it is doing is
/// waited for, or ended early, before memory moves. One thread at a time but for that one.
class slot_memory {
 public:
  using all = std::array<os::shared_memory, slot_table::slots_max>;

  explicit slot_memory(all memory) : memory_(std::move(memory)) {}
  ~slot_memory() { stop_filling(); }
  slot_memory(const slot_memory&) = delete;
  slot_memory& operator=(const slot_memory&) = delete;

  os::shared_memory& operator[](std::size_t slot) { return memory_[slot]; }
  const os::shared_memory& operator[](std::size_t slot) const { return memory_[slot]; }

  /// How many snapshots of that size the machine has memory for, with what the slots have already.
  /// `refused` if there is too little for one.
  result<std::uint64_t> room_for(std::uint64_t bytes) const;
  /// Memory for a snapshot of that size, unless the slot has it.
  result<void> fit(std::size_t slot, std::uint64_t bytes);

  /// Begins to touch so much of each slot, and to pin it where `words` say that a slot is empty;
  /// then moves `storages` to huge pages. Precondition: filling was stopped. `words` outlive it.
  void fill(std::uint64_t bytes, const slots& words, std::vector<bytes_at> storages);
  /// Ends it early.
  void stop_filling();
  /// Waits for it. How the last one ended.
  result<void> filled();

  /// From now on what is used by a device's driver is pinned.
  void pin_by(os::pinning how);
  /// Precondition: the slot shows at least so many bytes, and nothing fills.
  void pin(std::size_t slot, std::uint64_t bytes);
  /// Before memory behind so many bytes is hidden.
  void cut(std::size_t slot, std::uint64_t bytes) { pinned_[slot].cut(bytes); }
  std::uint64_t pinned_bytes(std::size_t slot) const { return pinned_[slot].bytes(); }

 private:
  std::uint64_t bytes() const;

  all memory_;
  std::array<os::pinned_part, slot_table::slots_max> pinned_;
  std::optional<os::pinning> pinning_; ///< none: nothing is to be pinned, or the driver refuses
  std::thread filler_;
  std::atomic<bool> stop_{false};
  result<void> filled_;
};

} // namespace troupe::ckpt
