#include "runtime/link/failure_detector.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/base/random.hpp"
#include "runtime/link/options.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::link;

namespace {

const instant start = instant{} + 1h;

/// As the acceptor of a link with this lease has it.
failure_detector judging(duration lease = limits::lease) {
  options o;
  o.lease = lease;
  return failure_detector({o.beat_every, lease / 2, silent_for_max(o, true)}, start);
}

/// A peer whose beats come up to `late_by_max` late, for a minute.
instant listen(failure_detector& s, duration late_by_max, std::uint64_t seed = 1) {
  random_source random(seed);
  auto now = start;
  for (auto sent = start; sent < start + 1min; sent += limits::beat_every) {
    const auto late = duration(
        static_cast<duration::rep>(random.unit() * static_cast<double>(late_by_max.count())));
    now = std::max(now, sent + late);
    s.heard(now);
  }
  return now;
}

} // namespace

TEST_CASE("a regular peer is believed a pause, a beat and a little: not as long as can be") {
  auto s = judging();
  CHECK(s.patience() > 1s + limits::beat_every + 150ms);
  listen(s, 0ms);
  CHECK(s.patience() > 1s + limits::beat_every + 150ms);
  CHECK(s.patience() < 1500ms);
}

TEST_CASE("the less regular a peer, the longer it is believed, but never beyond the lease") {
  duration before{};
  for (const auto late : {10ms, 100ms, 200ms, 400ms, 1000ms}) {
    CAPTURE(late.count());
    auto s = judging(10s);
    listen(s, late);
    CHECK(s.patience() >= before);
    before = s.patience();
    auto on_a_short_lease = judging();
    listen(on_a_short_lease, late);
    CHECK(on_a_short_lease.patience() <= limits::lease * 7 / 8);
  }
  CHECK(before > 6s);
}

TEST_CASE("what was irregular once is forgotten within half a minute") {
  auto s = judging();
  auto now = listen(s, 0ms);
  const auto calm = s.patience();
  now += 1200ms;
  s.heard(now);
  CHECK(s.patience() == limits::lease * 7 / 8);
  for (int i = 0; i < 120; ++i)
    s.heard(now += limits::beat_every);
  CHECK(s.patience() < calm + 20ms);
}

TEST_CASE("a pause of half the lease is survived at any time, by a peer as late as it ever was") {
  for (const auto lease : {1s, 2s, 10s, 60s}) {
    for (const auto late : {0ms, 20ms, 50ms, 100ms}) {
      for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        auto s = judging(lease);
        const auto last = listen(s, late, seed);
        const auto silence = lease / 2 + limits::beat_every + late;
        CHECK(last + silence < s.dead_at());
      }
    }
  }
}

TEST_CASE("messages between beats are signs of life and teach nothing about lateness") {
  auto talkative = judging();
  auto now = start;
  for (int i = 0; i < 10'000; ++i)
    talkative.heard(now += 3ms);
  CHECK(talkative.last_heard() == now);
  CHECK(talkative.dead_at() == now + talkative.patience());
  CHECK(talkative.patience() > 1s + limits::beat_every + 150ms);
  CHECK(talkative.patience() < 1500ms);
}

TEST_CASE("a gap of our own doing teaches nothing") {
  auto s = judging();
  const auto calm = s.patience();
  s.begin_anew(start + 1h);
  CHECK(s.patience() == calm);
  CHECK(s.dead_at() == start + 1h + calm);
  s.heard(start + 1h + limits::beat_every);
  CHECK(s.patience() == calm);
}

TEST_CASE("time that seems to go backwards does no harm") {
  auto s = judging();
  s.heard(start + 1s);
  s.heard(start);
  s.begin_anew(start);
  CHECK(s.last_heard() == start + 1s);
}

TEST_CASE("beats of a large job are rarer, and its lease is longer") {
  const auto check = [](std::size_t peers, duration beat_every, duration lease) {
    CAPTURE(peers);
    const auto timing = for_peers(peers);
    CHECK(timing.beat_every == beat_every);
    CHECK(timing.lease == lease);
    CHECK(validate(timing));
  };
  check(1, limits::beat_every, limits::lease);
  check(1'875, 250ms, 2s);
  check(3'750, 500ms, 4s);
  check(7'500, 1s, 8s);
  check(15'000, 2s, 16s);
  CHECK(validate(for_peers(limits::nodes_max)));
}

TEST_CASE("a lease of the user's own is kept, and beats are as frequent as it needs") {
  CHECK(for_peers(10'000, 2s).lease == 2s);
  CHECK(for_peers(10'000, 2s).beat_every == 250ms);
  CHECK(for_peers(7'500, 60s).beat_every == 1s);
  CHECK(for_peers(2, 60s).beat_every == 250ms);
  CHECK(validate(for_peers(10'000, limits::lease_min)));
}
