#include "ckpt/arena/held_piece.hpp"

#include "ckpt/arena/testing/process.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace troupe::ckpt;
using testing::process;

namespace {

/// A node's memory for others' pieces.
struct pieces {
  process p;
  std::array<held_piece, slot_table::slots_max> held{};

  std::size_t put(std::uint64_t step, std::uint32_t stripe) {
    const auto slot = p.s.begin_where([](std::size_t) { return false; }).value();
    held.at(slot).stripe = stripe;
    p.s.finish(slot, process::snapshot(step));
    return slot;
  }
  bool again(std::size_t slot) const {
    return is_given_again(p.s, slot, [this](std::size_t which) { return &held.at(which); });
  }
};

} // namespace

TEST_CASE("a parity that is given again takes the place of the one before") {
  pieces m;
  const auto first = m.put(1, 0), other_stripe = m.put(1, 2), other_step = m.put(2, 0);
  CHECK_FALSE(m.again(first));
  const auto second = m.put(1, 0);
  CHECK(m.again(first));
  CHECK_FALSE(m.again(second));
  CHECK_FALSE(m.again(other_stripe));
  CHECK_FALSE(m.again(other_step));
}

TEST_CASE("of other ranks it is another parity, and so is one that cannot be read") {
  pieces m;
  const auto first = m.put(1, 0), second = m.put(1, 0);
  REQUIRE(m.again(first));
  CHECK_FALSE(is_given_again(m.p.s, first, [](std::size_t) { return nullptr; }));
  m.held.at(second).ranks[1] = 7;
  CHECK_FALSE(m.again(first));
}

TEST_CASE("what is not whole yet takes no place") {
  pieces m;
  const auto first = m.put(1, 0);
  REQUIRE(m.p.s.begin_where([](std::size_t) { return false; }));
  CHECK_FALSE(m.again(first));
}
