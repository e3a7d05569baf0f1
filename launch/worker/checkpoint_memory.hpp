#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/os/memory/memory_ledger.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::launch {

/// Memory in which workers keep snapshots of their state (ckpt/arena): made by the keeper, empty,
/// before there is any other process, and inherited by all that come. So it outlives every worker
/// and every node supervisor, and is gone with the launcher. Beside it lies the page in which all
/// of them account for what they use of the node's memory (os::memory_ledger).
class checkpoint_memory {
 public:
  /// Local ranks beyond these have none: each takes a descriptor for its table and each of its
  /// slots, and there are launchers that may have few thousands.
  static constexpr std::uint32_t local_ranks_max = 64;
  static_assert(local_ranks_max <= os::memory_ledger::ranks_max);

  /// Of one process of the launcher: the descriptors themselves, and the one more that maps the
  /// table of slots.
  static constexpr std::uint64_t open_files_per_local_rank(bool for_others) {
    return (for_others ? 2 : 1) * (1 + ckpt::slot_table::slots_max + 1);
  }

  /// `for_others`: in a job of several nodes each local rank has as much again, for pieces of
  /// other nodes' snapshots.
  checkpoint_memory(std::uint32_t local_ranks, bool for_others);

  /// Of each local rank, as worker/troupe_ckpt.h wants them. Fewer local ranks where the system
  /// gives no more.
  std::vector<std::vector<int>> descriptors() const { return descriptors_of(*arenas_); }
  /// The same for others' snapshots.
  std::vector<std::vector<int>> descriptors_for_others() const { return descriptors_of(*others_); }

 private:
  using arena = std::vector<os::shared_memory>;
  using arenas = std::vector<arena>;
  static arenas make(std::uint32_t local_ranks, const char* name);
  std::vector<std::vector<int>> descriptors_of(const arenas& all) const;

  std::shared_ptr<arenas> arenas_, others_;
  std::shared_ptr<os::shared_memory> ledger_;
  std::shared_ptr<os::wake_event> saver_; ///< for all local ranks; it wakes the node's saver
};

} // namespace troupe::launch
