#include "actors/master/recovery/growth.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::actors;

namespace {

const instant dawn = instant{} + 1h;

growth fresh() {
  growth_options o;
  o.quiet = 100ms;
  o.most = 1s;
  o.short_lived = 10s;
  o.back_off_most = 2s;
  return growth(o);
}

} // namespace

TEST_SUITE("growth") {
  TEST_CASE("without a newcomer, or without a generation, there is nothing to do") {
    auto g = fresh();
    CHECK_FALSE(g.due());
    g.newcomer(dawn);
    CHECK_FALSE(g.due());
    g.generation_begins(dawn + 1s);
    CHECK(g.due() == dawn + 100ms);
    g.settled();
    CHECK_FALSE(g.due());
  }

  TEST_CASE("nodes that come together are taken together, but the first does not wait for ever") {
    auto g = fresh();
    g.generation_begins(dawn - 1h);
    for (int i = 0; i < 10; ++i) {
      g.newcomer(dawn + i * 90ms);
      CHECK(g.due() == dawn + i * 90ms + 100ms);
    }
    g.newcomer(dawn + 950ms);
    CHECK(g.due() == dawn + 1s);
  }

  TEST_CASE("after two short generations in a row newcomers wait twice as long each time") {
    auto g = fresh();
    auto now = dawn;
    std::vector<duration> waits;
    for (int i = 0; i < 9; ++i) {
      g.generation_begins(now);
      g.newcomer(now);
      waits.push_back(*g.due() - now);
      g.settled();
      now += 9s;
      g.generation_ends(now);
    }
    CHECK(waits == std::vector<duration>{100ms, 100ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2s, 2s});
    // One that lasts makes up for all.
    g.generation_begins(now);
    g.generation_ends(now + 10s);
    g.generation_begins(now + 10s);
    g.newcomer(now + 1h);
    CHECK(g.due() == now + 1h + 100ms);
  }

  TEST_CASE("the back-off counts from the first newcomer: more of them do not prolong it") {
    auto g = fresh();
    auto now = dawn;
    for (int i = 0; i < 6; ++i) {
      g.generation_begins(now);
      g.generation_ends(now += 1s);
    }
    g.generation_begins(now);
    g.newcomer(now + 5s);
    g.newcomer(now + 6s);
    CHECK(g.due() == now + 5s + 1600ms);
  }
}
