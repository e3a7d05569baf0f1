#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace troupe::os {

/// Whether this memory holds a table: another process has made what a descriptor brings. The error
/// names the descriptor.
result<void> check_table(const shared_memory& table, int descriptor);

/// The snapshot memory of one local rank, as a node supervisor uses it: a table of what is in the
/// slots, the slots' own memory, and a wake-up event. The keeper makes it and hands the descriptors
/// on; so it outlives the supervisor and the training process.
class snapshot_memory {
 public:
  /// `descriptors` in the order of troupe_ckpt.h; they stay the caller's, and open for as long as
  /// this is used. `invalid` if the first holds no table. Precondition: they are as many as that.
  static result<snapshot_memory> open(const std::vector<int>& descriptors);

  /// The table, for a process that makes no snapshots there: how many are kept is not its concern.
  ckpt::slots words() const {
    return {*reinterpret_cast<ckpt::slot_table*>(table_.data()), ckpt::slots::snapshots_max};
  }
  /// The descriptor of a slot's memory.
  int descriptor(std::size_t slot) const { return slots_.at(slot); }
  /// Maps a slot's memory as large as it is by now.
  result<shared_memory> map(std::size_t slot) const {
    return shared_memory::share(slots_.at(slot));
  }
  /// The descriptor of the event that wakes the supervisor.
  int wake_event() const { return wake_event_; }

 private:
  shared_memory table_;
  std::array<int, ckpt::slot_table::slots_max> slots_{};
  int wake_event_ = -1;
};

} // namespace troupe::os
