#include "runtime/base/rate_limiter.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;

namespace {

const instant start{1h};

} // namespace

TEST_CASE("without a bound everything may be sent now") {
  rate_limiter p(0, 100);
  for (int i = 0; i < 5; ++i) {
    CHECK(p.may_send(start, 1'000'000) == start);
    p.sent(start, 1'000'000);
  }
}

TEST_CASE("a burst at once, then one part after the other") {
  struct row {
    duration asked, may; ///< since the start
    std::uint64_t bytes;
  };
  // 100 bytes a second, 40 of them at once.
  const std::vector<row> rows = {
      {0s, 0s, 20},       {0s, 0s, 20},         {0s, 200ms, 20},      {200ms, 400ms, 20},
      {300ms, 600ms, 20}, {1000ms, 1000ms, 40}, {1000ms, 1100ms, 10}, {9s, 9s, 40},
      {9s, 9400ms, 40},   {20s, 20s, 100},      {20s, 21s, 40},
  };
  rate_limiter p(100, 40);
  for (const auto& r : rows) {
    const auto when = p.may_send(start + r.asked, r.bytes);
    CHECK(when == start + r.may);
    p.sent(when, r.bytes);
  }
}

TEST_CASE("in the long run there are never more than the rate and one burst") {
  rate_limiter p(1'000'000, 4'000);
  auto now = start;
  std::uint64_t sent = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto bytes = 1 + i * 7919 % 4'000;
    now = p.may_send(now, bytes);
    p.sent(now, bytes);
    sent += bytes;
    const auto seconds = std::chrono::duration<double>(now - start).count();
    REQUIRE(static_cast<double>(sent) <= 1'000'000 * seconds + 4'001);
  }
}
