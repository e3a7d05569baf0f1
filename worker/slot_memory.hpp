#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/pinned_part.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace troupe::ckpt {

struct bytes_at {
  const char* data = nullptr;
  std::uint64_t bytes = 0;
};

/// What a slot gets for a snapshot of that size: pickles of the same structure differ by a few
/// bytes from save to save.
std::uint64_t with_slack(std::uint64_t bytes);

/// The memory of a training process's slots: as much as a snapshot needs, there before it is
/// needed, and known to a device's driver. Whether it may be touched a node_share says.
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

  /// Bytes of all slots for which the kernel has given pages.
  std::uint64_t backed() const;
  /// So much of a snapshot in that slot has no pages yet.
  std::uint64_t missing(std::size_t slot, std::uint64_t bytes) const;
  /// The slots that have pages.
  slot_set with_pages() const;
  /// Memory for a snapshot of that size, unless the slot has it. It is not touched.
  result<void> enlarge(std::size_t slot, std::uint64_t bytes);
  /// Gives all of it back.
  result<void> clear(std::size_t slot);

  /// Hears of filling, from its thread.
  struct filling_observer {
    std::function<bool()> after_step; ///< some more is there; false: that is enough
    std::function<void()> ended;      ///< nothing more is touched
  };
  /// Begins to touch so much of these slots, and to pin it where `words` say that a slot is empty;
  /// then moves `storages` to huge pages. Precondition: filling was stopped. `words` outlive it.
  void fill(std::vector<std::size_t> which, std::uint64_t bytes, const slots& words,
            std::vector<bytes_at> storages, filling_observer observer);
  /// Whether slots are touched just now, and whether so much of this one.
  bool filling() const { return filling_; }
  bool fills(std::size_t slot, std::uint64_t bytes) const {
    return filling_ && bytes <= fills_up_to_[slot];
  }
  /// Ends it early.
  void stop_filling();
  /// Waits for it. How the last one ended.
  result<void> filled();

  /// From now on what is used by a device's driver is pinned.
  void pin_by(os::pinning how);
  /// Nothing is pinned any more; ends filling early.
  void unpin();
  /// Precondition: the slot shows at least so many bytes, and nothing fills.
  void pin(std::size_t slot, std::uint64_t bytes);
  /// Before memory behind so many bytes is hidden.
  void cut(std::size_t slot, std::uint64_t bytes) { pinned_[slot].cut(bytes); }
  std::uint64_t pinned_bytes(std::size_t slot) const { return pinned_[slot].bytes(); }

 private:
  all memory_;
  std::array<os::pinned_part, slot_table::slots_max> pinned_;
  std::optional<os::pinning> pinning_; ///< none: nothing is to be pinned, or the driver refuses
  std::thread filler_;
  std::atomic<bool> stop_{false}, filling_{false};
  /// Bytes of each slot that the filler touches; 0 when it was stopped.
  std::array<std::uint64_t, slot_table::slots_max> fills_up_to_{};
  result<void> filled_;
};

} // namespace troupe::ckpt
