#pragma once

#include "ckpt/arena/slots.hpp"
#include "ckpt/snapshot/torch_file.hpp"
#include "runtime/os/checkpoint/snapshot_watch.hpp"
#include "runtime/os/memory/memory_ledger.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace troupe::ckpt::testing {

/// A training process's end of an arena.
struct process {
  process() {
    table = *os::shared_memory::create("table", sizeof(slot_table));
    for (auto& m : memory)
      m = *os::shared_memory::create("slot", 0);
    words().format();
  }
  slots words() { return {*reinterpret_cast<slot_table*>(table.data()), 2}; }
  std::vector<int> descriptors() const {
    std::vector<int> all{table.descriptor()};
    for (const auto& m : memory)
      all.push_back(m.descriptor());
    all.push_back(ledger.descriptor());
    all.push_back(wake_event.descriptor());
    return all;
  }
  std::size_t save(const std::string& place, std::uint64_t step, bool requested = true) {
    auto at = words();
    const auto slot = at.begin().value();
    const std::vector<std::uint64_t> sizes{content.size()};
    const torch_file file(1, sizes);
    const auto bytes = file.layout().bytes();
    REQUIRE(memory[slot].bytes() <= bytes);
    REQUIRE(memory[slot].grow(bytes));
    auto* snapshot = memory[slot].data();
    file.write_frame(snapshot);
    snapshot[file.pickle_at()] = '.';
    std::memcpy(snapshot + file.storage_at(0), content.data(), content.size());
    slot_snapshot what;
    what.step = step;
    what.generation = 3;
    what.save = step + 100;
    what.world_size = 1;
    what.bytes = bytes;
    slot_destination to;
    std::strcpy(to.place.data(), place.c_str());
    std::strcpy(to.directory.data(), std::to_string(step).c_str());
    std::strcpy(to.file.data(), "rank_0.pt");
    to.shards = 1;
    to.keep_latest = 1;
    at.finish(slot, what, to, requested);
    wake_event.signal();
    return slot;
  }
  os::shared_memory table;
  std::array<os::shared_memory, slot_table::slots_max> memory;
  os::shared_memory ledger = *os::memory_ledger::make_page();
  os::wake_event wake_event = *os::wake_event::create();
  const std::string content = std::string(3'000'000, 'x');
};

inline std::shared_ptr<snapshot_watch> watch_of(const process& p) {
  auto opened = snapshot_watch::open({p.descriptors()});
  REQUIRE_MESSAGE(opened, opened.error().what);
  return *opened;
}

inline void wait_for_outcome(process& p, std::uint32_t before) {
  while (p.words().outcomes_told().load() == before)
    REQUIRE(os::wait_while(p.words().outcomes_told(), before, 30s));
}

} // namespace troupe::ckpt::testing
