#include "actors/master/recovery/start_pause.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::actors;

TEST_SUITE("start_pause") {
  TEST_CASE("the first failure is followed at once, each further one after twice as long") {
    start_pause p({10s, 100ms, 1s});
    auto now = instant{} + 1h;
    std::vector<duration> pauses;
    for (int i = 0; i < 7; ++i) {
      pauses.push_back(p.failed(now, 50ms));
      CHECK(p.holds(now) == (i > 0));
      now += 1min;
      CHECK_FALSE(p.holds(now));
      CHECK_FALSE(p.until());
    }
    CHECK(pauses == std::vector<duration>{0s, 100ms, 200ms, 400ms, 800ms, 1s, 1s});
  }

  TEST_CASE("work begins the count anew") {
    start_pause p({10s, 100ms, 1s});
    const auto now = instant{} + 1h;
    p.failed(now, 0s);
    CHECK(p.failed(now, 9s) == 100ms);
    CHECK(p.failed(now, 10s) == 0s);
    CHECK_FALSE(p.holds(now));
    CHECK(p.in_a_row() == 0);
    CHECK(p.failed(now, 0s) == 0s);
    CHECK(p.failed(now, 0s) == 100ms);
  }

  TEST_CASE("a later planner goes on from the count of the one before") {
    start_pause p({10s, 100ms, 1s});
    p.recall(3);
    CHECK_FALSE(p.until());
    CHECK(p.failed(instant{} + 1h, 0s) == 400ms);
  }

  TEST_CASE("it never waits longer than its bound") {
    start_pause p({10s, 100ms, 1s});
    p.recall(4'000'000'000U);
    CHECK(p.failed(instant{} + 1h, 0s) == 1s);
  }
}
