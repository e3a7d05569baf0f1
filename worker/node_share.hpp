#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/memory_ledger.hpp"
#include "worker/slot_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// A training process's share of its node's memory: how many snapshots it keeps of each place that
/// it saves to, and which memory of its slots it may touch.
///
/// All ranks of a node keep the same number, by the node's ledger, of each place. This asks it
/// before memory is touched, follows what it decides, and gives back what is too much then. A save
/// into memory that is there does not ask. If memory does not suffice for one snapshot of each
/// place, the place that saves has it alone until another does.
class node_share {
 public:
  /// `words` are of no place. `memory` outlives this; nothing fills when it ends.
  node_share(os::memory_ledger ledger, std::size_t rank, slots words, slot_memory& memory);
  node_share(const node_share&) = delete;
  node_share& operator=(const node_share&) = delete;

  /// This process has the memory from now on.
  void opened() {
    ledger_.opened(declared_.rank, memory_.backed());
    pressed_ = ledger_.pressed();
  }
  /// Snapshots of a place are saved here, `wanted` of them to be kept; and are not any more.
  void enter(place_id place, std::size_t wanted);
  void leave(place_id place);
  bool is_open(place_id place) const { return places_.count(place) != 0; }
  bool is_any_open() const { return !places_.empty(); }
  /// Whether it is known how many snapshots of an open place are kept, and how many that are.
  bool decided(place_id place) const { return decided_ && places_.at(place).snapshot != 0; }
  std::size_t kept(place_id place) const;
  /// Memory does not suffice for all places, and this one has it.
  bool has_alone(place_id place) const { return alone_ == place; }
  /// Keeps as many snapshots as the node's ranks do, by a new decision where this place needs more
  /// than it has declared.
  result<void> agree(place_id place, std::uint64_t bytes);
  /// Leave to touch what a snapshot of that size needs in this slot, until `touched`. Nothing is
  /// changed in the slot. From then on other ranks wait before they judge what they see. False:
  /// memory is so short that other launchers may have been granted the same; then `commit` touches
  /// it.
  result<bool> fit(std::size_t slot, std::uint64_t bytes);
  /// Touches so much of the slot, as long as there is more than has to stay free. `refused` if
  /// there is not; what was touched is there. Precondition: the slot is that large.
  result<void> commit(std::size_t slot, std::uint64_t bytes);
  /// All that a save was to touch is there, or is not to be.
  void touched();
  /// Has all memory that is kept for snapshots of that size touched beforehand, for which it has to
  /// be free. See slot_memory::fill.
  result<void> prepare(place_id place, std::uint64_t bytes, std::vector<bytes_at> storages);
  /// The memory of an empty slot.
  void give_back(std::size_t slot);

  /// What the user should know of how many are kept; each line is told once.
  std::optional<std::string> notice();
  int descriptor() const { return ledger_.descriptor(); }

 private:
  struct tenant {
    std::size_t arenas = 0;     ///< that are open
    std::size_t wanted = 0;     ///< snapshots to be kept
    std::uint64_t snapshot = 0; ///< bytes of one, with slack; 0: not known yet
  };

  std::uint64_t mapped() const;
  std::uint64_t of_all() const;
  result<void> declare(std::uint64_t snapshot);
  void follow();
  void give_surplus_back();
  result<bool> reserve(std::uint64_t more);
  result<std::vector<std::size_t>> reserve_empty_slots(place_id place, std::uint64_t bytes);
  bool is_some_left() const;
  void account();
  void nothing_in_transit();

  os::memory_ledger ledger_;
  slots words_;
  slot_memory& memory_;
  std::map<place_id, tenant> places_;
  std::optional<place_id> alone_;
  bool tell_alone_ = false;
  bool ample_ = true;                       ///< when slots were last reserved beforehand
  os::memory_ledger::declaration declared_; ///< the last that was granted
  bool decided_ = false;                    ///< one was
  std::size_t kept_ = 0;                    ///< the ledger's, when it was last followed,
  std::uint32_t pressed_ = 0;               ///< and this
  /// What this process may touch now, all told; 0: it touches nothing new.
  std::atomic<std::uint64_t> touching_until_{0};
  std::atomic<int> saving_{0}; ///< saves that touch what they were given
};

} // namespace troupe::ckpt
