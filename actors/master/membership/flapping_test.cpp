#include "actors/master/membership/flapping.hpp"

#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// Losses of node "a" every `every`; how long it has to wait right after the last one.
duration wait_after(unsigned losses, duration every) {
  flapping f;
  auto now = dawn;
  for (unsigned i = 0; i < losses; ++i)
    f.lost(now += every, "a");
  return f.must_wait(now, "a");
}

} // namespace

TEST_SUITE("flapping") {
  TEST_CASE("a few losses are free, then each doubles the wait, up to a bound") {
    CHECK(wait_after(0, 1s) == 0s);
    CHECK(wait_after(1, 1s) == 0s);
    CHECK(wait_after(2, 1s) == 0s);
    CHECK(wait_after(3, 1s) == 1s);
    CHECK(wait_after(4, 1s) == 2s);
    CHECK(wait_after(5, 1s) == 4s);
    CHECK(wait_after(8, 1s) == 30s);
    CHECK(wait_after(1'000'000, 1us) == 30s);
  }

  TEST_CASE("time waited is not waited again") {
    flapping f;
    for (int i = 0; i < 4; ++i)
      f.lost(dawn, "a");
    CHECK(f.must_wait(dawn + 500ms, "a") == 1500ms);
    CHECK(f.must_wait(dawn + 2s, "a") == 0s);
    CHECK(f.must_wait(dawn + 1h, "a") == 0s);
  }

  TEST_CASE("a node that is lost once a minute never waits, also after the worst") {
    CHECK(wait_after(1'000, 60s) == 0s);
    flapping f;
    for (int i = 0; i < 100; ++i)
      f.lost(dawn, "a");
    f.lost(dawn + 10min, "a");
    CHECK(f.must_wait(dawn + 10min, "a") == 0s);
  }

  TEST_CASE("one node's losses are not another's") {
    flapping f;
    for (int i = 0; i < 10; ++i)
      f.lost(dawn, "a");
    CHECK(f.must_wait(dawn, "b") == 0s);
  }

  TEST_CASE("it remembers only so many, and those that were lost last") {
    flapping f;
    for (std::uint32_t i = 0; i < limits::nodes_max + 10; ++i)
      for (int times = 0; times < 3; ++times)
        f.lost(dawn + std::chrono::milliseconds(i), "n" + std::to_string(i));
    const auto now = dawn + std::chrono::milliseconds(limits::nodes_max + 10);
    CHECK(f.must_wait(dawn + 9ms, "n9") == 0s);
    CHECK(f.must_wait(now, "n" + std::to_string(limits::nodes_max + 9)) == 999ms);
  }
}
