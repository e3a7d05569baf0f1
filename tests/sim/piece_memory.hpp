#pragma once

#include "ckpt/copies/target_core.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

/// A node's memory for others' snapshots, an arena for each local rank:
/// runtime/os/copies/piece_memory with a string where a slot's shared memory would be. Outlives the
/// node supervisor that fills it, not its launcher.
class sim_piece_memory {
 public:
  /// A parity that is whole, and where it lies.
  struct piece {
    std::size_t slot = 0;
    std::uint64_t sequence = 0;
    ckpt::slot_snapshot says;
    ckpt::held_piece header;
  };

  /// `refused` if all slots hold what may not go.
  result<void> open(const ckpt::target_core::open& o);
  // Nothing happens for a stripe that could not be opened.
  void grow(const ckpt::target_core::grow& g);
  void add(const ckpt::target_core::add& a);
  void finish(const ckpt::target_core::finish& f);
  void drop(const ckpt::target_core::drop& d);
  /// What a supervisor had half done when it crashed is nothing.
  void writer_died();

  std::vector<piece> pieces(local_rank local) const;
  /// The bytes of that piece, its header before them; null if it has gone.
  const std::string* bytes_of(local_rank local, std::size_t slot, std::uint64_t sequence) const;

 private:
  struct arena {
    ckpt::slot_table table;
    std::array<std::string, ckpt::slot_table::slots_max> memory;
    ckpt::slots words() { return {table, ckpt::slots::snapshots_max}; }
  };
  struct parity {
    local_rank local = 0;
    std::size_t slot = 0;
  };

  arena& arena_of(local_rank local);
  std::string& memory_of(const parity& p) { return arena_of(p.local).memory.at(p.slot); }

  std::map<local_rank, std::unique_ptr<arena>> arenas_;
  std::map<ckpt::target_core::stripe_id, parity> open_;
};

} // namespace troupe::sim
