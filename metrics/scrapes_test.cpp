#include "metrics/scrapes.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using troupe::metrics::scrapes;

namespace {

constexpr instant t0{};

scrapes read_at(std::initializer_list<duration> times) {
  scrapes s;
  for (const auto at : times)
    s.read(t0 + at);
  return s;
}

} // namespace

TEST_CASE("a run that nothing reads, or that was read once, does not wait") {
  CHECK(scrapes{}.wait_after(t0 + 100s, 60s) == 0s);
  CHECK(read_at({90s}).wait_after(t0 + 100s, 60s) == 0s);
}

TEST_CASE("a scraper is waited for until it could have come twice") {
  const auto s = read_at({60s, 75s, 90s});
  CHECK(s.wait_after(t0 + 100s, 60s) == 20s);
  CHECK(s.wait_after(t0 + 100s, 5s) == 5s);
  CHECK(s.wait_after(t0 + 100s, 0s) == 0s);
  // It is not there any more.
  CHECK(s.wait_after(t0 + 120s, 60s) == 0s);
  CHECK(s.wait_after(t0 + 10'000s, 60s) == 0s);
}

TEST_CASE("two scrapers shortly after each other have the interval of one") {
  const auto s = read_at({60s, 60s + 100ms, 75s, 75s + 100ms});
  CHECK(s.wait_after(t0 + 76s, 60s) == 75s + 100ms + 2 * 14'900ms - 76s);
}

TEST_CASE("answers that overtake each other, and a page that was read a million times") {
  auto s = read_at({60s, 90s, 75s});
  CHECK(s.wait_after(t0 + 100s, 60s) == 20s);
  CHECK(s.read_since(t0 + 90s));
  CHECK_FALSE(s.read_since(t0 + 91s));
  for (int n = 0; n < 1'000; ++n)
    s.read(t0 + 100s + n * 1s);
  // Longer gaps than the last eight reads have are forgotten.
  CHECK(s.wait_after(t0 + 1'099s, 60s) == 2s);
}
