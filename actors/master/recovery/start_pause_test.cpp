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
      pauses.push_back(p.failed(now, 50ms, "x", "a"));
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
    p.failed(now, 0s, "x", "a");
    CHECK(p.failed(now, 9s, "x", "a") == 100ms);
    CHECK(p.failed(now, 10s, "x", "a") == 0s);
    CHECK_FALSE(p.holds(now));
    CHECK(p.in_a_row() == 0);
    CHECK(p.failed(now, 0s, "x", "a") == 0s);
    CHECK(p.failed(now, 0s, "x", "a") == 100ms);
  }

  TEST_CASE("a later planner goes on from the count of the one before") {
    start_pause p({10s, 100ms, 1s});
    p.recall(3, 0, false, "", "a");
    CHECK_FALSE(p.until());
    CHECK(p.failed(instant{} + 1h, 0s, "x", "a") == 400ms);
  }

  TEST_CASE("failures are the same while nothing comes between") {
    start_pause p({10s, 100ms, 1s});
    const auto now = instant{} + 1h;
    const auto same = [&](duration worked, const char* how) {
      p.failed(now, worked, how, "a");
      return p.same_in_a_row();
    };
    CHECK(same(0s, "x") == 1);
    CHECK(same(0s, "x") == 2);
    CHECK(same(0s, "y") == 1);
    CHECK(same(0s, "") == 0); // killed
    CHECK(same(0s, "") == 0);
    CHECK(same(0s, "x") == 1);
    CHECK(same(10s, "x") == 0); // it had worked
    CHECK(same(0s, "x") == 1);
    p.ended(9s);
    CHECK(same(0s, "x") == 2);
    p.ended(10s);
    CHECK(p.in_a_row() == 0);
    CHECK(same(0s, "x") == 1);
    start_pause later({10s, 100ms, 1s});
    later.recall(3, 2, false, "x", "a");
    later.failed(now, 0s, "x", "a");
    CHECK(later.same_in_a_row() == 3);
  }

  TEST_CASE("and on several nodes as long as they are the same") {
    start_pause p({10s, 100ms, 1s});
    const auto now = instant{} + 1h;
    const auto several = [&](const char* how, const char* node) {
      p.failed(now, 0s, how, node);
      return p.is_on_several();
    };
    CHECK_FALSE(several("x", "a"));
    CHECK_FALSE(several("x", "a"));
    CHECK(several("x", "b"));
    CHECK(several("x", "b"));
    CHECK_FALSE(several("y", "a"));
    CHECK(several("y", "b"));
    for (const bool known : {false, true}) {
      start_pause later({10s, 100ms, 1s});
      later.recall(3, 3, known, "y", "a");
      later.failed(now, 0s, "y", "a");
      CHECK(later.is_on_several() == known);
      later.failed(now, 0s, "y", "b");
      CHECK(later.is_on_several());
    }
  }

  TEST_CASE("it never waits longer than its bound") {
    start_pause p({10s, 100ms, 1s});
    p.recall(4'000'000'000U, 0, false, "", "a");
    CHECK(p.failed(instant{} + 1h, 0s, "x", "a") == 1s);
  }
}
