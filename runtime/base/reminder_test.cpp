#include "runtime/base/reminder.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;

namespace {
const instant start{instant{} + 1h};

/// The seconds at which it is due, asked exactly when it wants to be asked.
std::vector<int> due_within(reminder& r, duration limit) {
  std::vector<int> seconds;
  while (r.next() && *r.next() - start <= limit) {
    const auto now = *r.next();
    CHECK_FALSE(r.due(now - 1ns));
    CHECK(r.due(now));
    seconds.push_back(static_cast<int>((now - start) / 1s));
  }
  return seconds;
}
} // namespace

TEST_SUITE("reminder") {
  TEST_CASE("a wait is mentioned after 10 s, at 30 s, and then every minute") {
    reminder r;
    CHECK_FALSE(r.next());
    r.begin(start);
    CHECK(due_within(r, 4min) == std::vector<int>{10, 30, 60, 120, 180, 240});
  }

  TEST_CASE("a late question is answered once") {
    reminder r;
    r.begin(start);
    CHECK(r.due(start + 90s));
    CHECK_FALSE(r.due(start + 90s));
    CHECK(*r.next() == start + 120s);
    CHECK(r.waited(start + 90s) == 90s);
  }

  TEST_CASE("a wait that is over is not mentioned") {
    reminder r;
    r.begin(start);
    r.end();
    CHECK_FALSE(r.next());
    CHECK_FALSE(r.due(start + 1h));
    r.begin(start + 1h);
    CHECK(*r.next() == start + 1h + 10s);
  }
}
