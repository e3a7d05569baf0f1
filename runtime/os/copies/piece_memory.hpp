#pragma once

#include "ckpt/copies/target_core.hpp"
#include "runtime/os/memory/memory_ledger.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/snapshot_memory.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <vector>

namespace troupe::ckpt {

/// The memory for others' snapshots, one arena for each local rank, while parities come into being
/// there: does what a target_core decides about stripes. Its memory comes after that of this node's
/// own snapshots: what the node's ledger has promised to those is refused here. One thread at a
/// time.
class piece_memory {
 public:
  /// As for replication_target::open.
  static result<piece_memory> map(const std::vector<std::vector<int>>& arenas);

  std::size_t local_ranks() const { return arenas_.size(); }

  result<void> open(const target_core::open& o);
  result<void> grow(const target_core::grow& g);
  // Nothing happens for a stripe that could not be opened.
  void add(const target_core::add& a);
  void finish(const target_core::finish& f);
  void drop(const target_core::drop& d);
  void drop_all();

 private:
  struct arena {
    os::snapshot_memory own;
    /// Mapped from when something is first added there, and from then on: to touch each page of a
    /// new mapping takes longer than to add to it.
    std::array<os::shared_memory, slot_table::slots_max> memory;
    /// Of each slot, with pages, as far as it is known.
    std::array<std::uint64_t, slot_table::slots_max> backed{};
    slots words() const { return own.words(); }
  };
  struct parity {
    local_rank local = 0;
    std::size_t slot = 0;
  };

  os::shared_memory& memory_of(const parity& p) { return arenas_.at(p.local).memory.at(p.slot); }
  explicit piece_memory(os::memory_ledger ledger) : ledger_(std::move(ledger)) {}
  void count(arena& one);
  void account(const parity& p);
  result<void> make_room(const parity& p, std::uint64_t bytes);
  result<void> map_slot(const parity& p);
  /// What that slot holds; null if it is no whole piece.
  const held_piece* piece_in(const parity& p);
  result<void> lay_out(const parity& p, std::uint64_t bytes);

  os::memory_ledger ledger_;
  std::uint64_t backed_ = 0, reserved_ = 0; ///< of all slots
  std::vector<arena> arenas_;
  std::map<target_core::stripe_id, parity> open_;
};

} // namespace troupe::ckpt
