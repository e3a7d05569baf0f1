#pragma once

#include "ckpt/arena/slots.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace troupe::ckpt::testing {

/// One that saves, and the words that it and its node share.
struct process {
  explicit process(std::size_t count = 2)
      : table(std::make_unique<slot_table>()), s(*table, count) {
    s.format();
  }
  std::size_t save(std::uint64_t step) {
    const auto slot = s.begin();
    REQUIRE(slot);
    s.finish(*slot, snapshot(step));
    return *slot;
  }
  bool set_mapped(std::size_t slot) { return s.set_mapped(slot, s.word(slot).sequence); }
  static slot_snapshot snapshot(std::uint64_t step) {
    slot_snapshot i;
    i.step = step;
    i.bytes = 100 * step;
    return i;
  }
  std::uint64_t newest_step() const { return s.snapshot(s.newest().value()).step; }

  std::unique_ptr<slot_table> table;
  slots s;
};

inline slot_destination somewhere() {
  slot_destination to;
  to.shards = 1;
  return to;
}

} // namespace troupe::ckpt::testing
