#include "runtime/link/refusal_notes.hpp"

#include "runtime/base/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;

namespace {

const instant start = instant{} + 1h;

} // namespace

TEST_CASE("a few refused connections are told one by one") {
  link::refusal_notes notes;
  for (std::uint64_t i = 0; i < limits::refusals_told; ++i)
    CHECK(notes.refused(start, "why"));
  CHECK_FALSE(notes.next_wakeup());
  CHECK_FALSE(notes.tick(start + 1h));
}

TEST_CASE("of a flood the first are told and the others counted, in each period") {
  link::refusal_notes notes;
  auto now = start;
  std::uint64_t told = 0;
  for (int period = 0; period < 3; ++period) {
    for (int i = 0; i < 3'000; ++i)
      told += notes.refused(now, "connection from 10.0.0.9:1: silent");
    REQUIRE(notes.next_wakeup());
    now = *notes.next_wakeup();
    CHECK(notes.tick(now) ==
          "2990 more connections were refused within 10.0 s; the last one, connection from "
          "10.0.0.9:1: silent");
  }
  CHECK(told == 3 * limits::refusals_told);
  CHECK_FALSE(notes.next_wakeup());
}
