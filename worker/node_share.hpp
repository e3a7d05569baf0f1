#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/memory_ledger.hpp"
#include "worker/slot_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// A training process's share of its node's memory: how many snapshots it keeps, and which memory
/// of its slots it may touch.
///
/// All ranks of a node keep the same number, by the node's ledger. This asks it before memory is
/// touched, follows what it decides, and gives back what is too much then. A save into memory that
/// is there does not ask.
class node_share {
 public:
  /// `words` and `memory` outlive it; nothing fills when it ends.
  node_share(os::memory_ledger ledger, std::size_t rank, std::size_t wanted, slots& words,
             slot_memory& memory);
  node_share(const node_share&) = delete;
  node_share& operator=(const node_share&) = delete;

  /// This process has the memory from now on.
  void opened() { ledger_.opened(declared_.rank, memory_.backed()); }
  /// Whether it is known how many snapshots are kept.
  bool decided() const { return decided_; }
  /// Keeps as many snapshots as the node's ranks do, by a new decision where this one needs more
  /// than it has declared.
  result<void> agree(std::uint64_t bytes);
  /// Leave to touch what a snapshot of that size needs in this slot, until `touched`. Nothing is
  /// changed in the slot. From then on other ranks wait before they judge what they see.
  result<void> fit(std::size_t slot, std::uint64_t bytes);
  /// All that a save was to touch is there, or is not to be.
  void touched();
  /// Has all memory that is kept for snapshots of that size touched beforehand, for which it has to
  /// be free. See slot_memory::fill.
  result<void> prepare(std::uint64_t bytes, std::vector<bytes_at> storages);

  /// What the user should know of how many are kept; each line is told once.
  std::optional<std::string> notice() { return ledger_.notice(); }
  int descriptor() const { return ledger_.descriptor(); }

 private:
  std::uint64_t mapped() const;
  void follow();
  void give_surplus_back();
  void give_back(std::size_t slot);
  result<void> reserve(std::uint64_t more);
  result<std::vector<std::size_t>> reserve_empty_slots(std::uint64_t bytes);
  void account();
  void nothing_in_transit();

  os::memory_ledger ledger_;
  slots& slots_;
  slot_memory& memory_;
  os::memory_ledger::declaration declared_; ///< the last that was granted
  bool decided_ = false;                    ///< one was
  std::uint32_t pressed_ = 0;               ///< the ledger's, when it was last followed
  /// What this process may touch now, all told; 0: it touches nothing new.
  std::atomic<std::uint64_t> touching_until_{0};
  std::atomic<bool> saving_{false}; ///< a save touches what it was given
};

} // namespace troupe::ckpt
