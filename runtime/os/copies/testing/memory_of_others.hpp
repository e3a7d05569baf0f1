#pragma once

#include "ckpt/arena/held_piece.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/os/memory/memory_ledger.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace troupe::ckpt::testing {

/// The memory of one local rank for others' snapshots, as a keeper makes it, and a look into it.
class memory_of_others {
 public:
  memory_of_others()
      : ledger_(made(os::memory_ledger::make_page())), wake_event_(made(os::wake_event::create())) {
    table_ = made(os::shared_memory::create("table", sizeof(slot_table)));
    for (auto& slot : slots_)
      slot = made(os::shared_memory::create("slot", 0));
  }

  std::vector<int> descriptors() const {
    std::vector<int> all{table_.descriptor()};
    for (const auto& slot : slots_)
      all.push_back(slot.descriptor());
    all.push_back(ledger_.descriptor());
    all.push_back(wake_event_.descriptor());
    return all;
  }

  slots words() const { return {*reinterpret_cast<slot_table*>(table_.data()), 2}; }

  struct piece {
    slot_snapshot snapshot;
    held_piece header;
    std::string parity;
  };

  /// Of every whole piece.
  std::vector<piece> held() const {
    std::vector<piece> found;
    for (std::size_t slot = 0; slot < slots::count(); ++slot)
      if (words().word(slot).state == slot_state::ready) {
        const auto memory = made(os::shared_memory::adopt(::dup(slots_[slot].descriptor())));
        const auto snapshot = words().snapshot(slot);
        found.push_back({snapshot, *reinterpret_cast<const held_piece*>(memory.data()),
                         std::string(memory.data() + held_piece::bytes_before,
                                     snapshot.bytes - held_piece::bytes_before)});
      }
    return found;
  }

  std::size_t count(slot_state state) const {
    std::size_t found = 0;
    for (std::size_t slot = 0; slot < slots::count(); ++slot)
      found += words().word(slot).state == state ? 1 : 0;
    return found;
  }

 private:
  template<class T>
  static T made(result<T> r) {
    invariant(r.has_value(), r ? "" : r.error().what);
    return std::move(*r);
  }

  os::shared_memory table_;
  std::array<os::shared_memory, slot_table::slots_max> slots_;
  os::shared_memory ledger_;
  os::wake_event wake_event_;
};

} // namespace troupe::ckpt::testing
