#include "runtime/link/admission_core.hpp"

#include "runtime/base/random.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using link::admission_core;

namespace {

const instant start = instant{} + 1h;

/// A listening place, told as a story: which connections come, and what is done about them ("begin
/// 1 drop 2").
struct listener {
  explicit listener(admission_core::options o = {8, 4, 1s, 5s}) : core(o) {}

  std::string text(const admission_core::effects& todo) {
    std::string all;
    for (const auto& each : todo.drop)
      all += "drop " + std::to_string(each.which) + " ";
    for (const auto which : todo.begin)
      all += "begin " + std::to_string(which) + " ";
    if (!all.empty())
      all.pop_back();
    return all;
  }
  std::string comes(const std::string& from) { return text(core.came(now, ++last, from)); }
  std::string speaks(admission_core::id which) { return text(core.spoke(now, which)); }
  /// Comes and speaks at once.
  std::string dials(const std::string& from) {
    auto first = comes(from);
    const auto then = speaks(last);
    return first.empty() || then.empty() ? first + then : first + " " + then;
  }
  std::string proves(admission_core::id which) { return text(core.ended(now, which, true)); }
  std::string fails(admission_core::id which) { return text(core.ended(now, which, false)); }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }

  admission_core core;
  instant now = start;
  admission_core::id last = 0;
};

} // namespace

TEST_CASE("a handshake begins when the peer has said something") {
  listener d;
  CHECK(d.comes("10.0.0.1") == "");
  CHECK(d.core.waiting() == 1);
  CHECK(d.speaks(1) == "begin 1");
  CHECK(d.core.proving() == 1);
  CHECK(d.speaks(1) == "");
  CHECK(d.proves(1) == "");
  CHECK(d.core.proving() == 0);
  CHECK_FALSE(d.core.next_wakeup());
}

TEST_CASE("a silent connection is waited for no longer than a handshake") {
  listener d;
  d.comes("10.0.0.1");
  CHECK(d.core.next_wakeup() == start + 5s);
  CHECK(d.passes(4s) == "");
  CHECK(d.passes(1s) == "drop 1");
  CHECK(d.speaks(1) == "");
}

TEST_CASE("silent connections are bounded: the oldest goes first, and no dialler waits for them") {
  listener d;
  for (int i = 0; i < 8; ++i)
    CHECK(d.comes("10.6.6.6") == "");
  CHECK(d.comes("10.6.6.6") == "drop 1");
  CHECK(d.dials("10.0.0.1") == "drop 2 begin 10");
  for (int i = 0; i < 1'000; ++i)
    d.comes("10.6.6.6");
  CHECK(d.dials("10.0.0.2") == "drop 1003 begin 1011");
}

TEST_CASE("a known address has handshakes of its own, whatever the others do") {
  listener d;
  d.dials("10.0.0.1");
  d.proves(1);
  // Four that have begun a handshake and do not go on: one place is not theirs.
  for (int i = 0; i < 4; ++i)
    d.dials("10.6.6." + std::to_string(i));
  CHECK(d.core.proving() == 3);
  CHECK(d.dials("10.0.0.1") == "begin 6");
  // With all places taken a known one goes first when one is free.
  CHECK(d.dials("10.0.0.1") == "");
  CHECK(d.fails(2) == "begin 7");
  CHECK(d.fails(3) == "begin 5");
}

TEST_CASE(
    "known ones take the places of unknown ones that have had their time, never the reverse") {
  listener d;
  d.dials("10.0.0.1");
  d.proves(1);
  for (int i = 0; i < 3; ++i)
    d.dials("10.6.6.6");
  d.dials("10.0.0.1");
  CHECK(d.core.proving() == 4);
  CHECK(d.dials("10.0.0.1") == "");
  CHECK(d.core.next_wakeup() == start + 1s);
  CHECK(d.passes(1s) == "drop 2 begin 6");
  CHECK(d.dials("10.0.0.1") == "drop 3 begin 7");
  CHECK(d.dials("10.0.0.1") == "drop 4 begin 8");
  CHECK(d.passes(2s) == "");
  CHECK(d.dials("10.7.7.7") == "");
}

TEST_CASE("a wakeup that changes nothing is not asked for again at once") {
  listener d;
  d.dials("10.0.0.1");
  d.proves(1);
  for (int i = 0; i < 4; ++i)
    d.dials("10.0.0.1");
  d.dials("10.7.7.7");
  CHECK(d.passes(1s) == "");
  REQUIRE(d.core.next_wakeup());
  CHECK(*d.core.next_wakeup() > d.now);
}

TEST_CASE("of two unknown addresses the one with fewer handshakes goes first") {
  listener d;
  for (int i = 0; i < 6; ++i)
    d.dials("10.6.6.6");
  CHECK(d.core.proving() == 3);
  d.dials("10.0.0.1");
  CHECK(d.fails(1) == "begin 7");
  CHECK(d.fails(2) == "begin 4");
}

TEST_CASE("a whole job that dials at once waits for its turn, in the kernel as well") {
  listener d;
  for (int i = 0; i < 11; ++i)
    CHECK(d.dials("10.0.0." + std::to_string(i)).find("drop") == std::string::npos);
  CHECK(d.core.full(d.now));
  CHECK(d.proves(1) == "begin 4");
  CHECK_FALSE(d.core.full(d.now));
}

TEST_CASE("one address that dials without end is cut back to its part, and others are let in") {
  listener d;
  for (int i = 0; i < 200; ++i) {
    REQUIRE_FALSE(d.core.full(d.now));
    d.dials("10.6.6.6");
  }
  CHECK(d.core.waiting() == 8);
  CHECK(d.dials("10.0.0.1").find("drop 200") == 0);
  CHECK(d.fails(1) == "begin 201");
}

TEST_CASE("whatever comes, the bounds hold and every connection is begun or dropped") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    random_source chance(seed);
    admission_core core({8, 4, 1s, 5s});
    auto now = start;
    admission_core::id last = 0;
    std::set<admission_core::id> waiting, proving;
    const auto take = [&](const admission_core::effects& todo) {
      for (const auto& each : todo.drop)
        REQUIRE(waiting.erase(each.which) + proving.erase(each.which) == 1);
      for (const auto which : todo.begin) {
        REQUIRE(waiting.erase(which) == 1);
        proving.insert(which);
      }
    };
    for (int step = 0; step < 2'000; ++step) {
      now += std::chrono::milliseconds(chance.below(400));
      switch (chance.below(4)) {
      case 0:
        if (!core.full(now)) {
          waiting.insert(++last);
          take(core.came(now, last, std::to_string(chance.below(5))));
        }
        break;
      case 1:
        take(core.spoke(now, 1 + chance.below(last + 1)));
        break;
      case 2:
        if (!proving.empty()) {
          const auto which = *proving.begin();
          proving.erase(which);
          take(core.ended(now, which, chance.chance(0.3)));
        }
        break;
      default:
        take(core.tick(now));
      }
      REQUIRE(core.waiting() == waiting.size());
      REQUIRE(core.proving() == proving.size());
      REQUIRE(waiting.size() <= 8);
      REQUIRE(proving.size() <= 4);
    }
    take(core.tick(now + 5s));
    CHECK(waiting.empty());
  }
}

TEST_CASE("a job that dials all at once loses none that has not spoken yet") {
  listener d({8, 4, 1s, 5s, 250ms});
  for (int i = 0; i < 8; ++i)
    CHECK(d.comes("10.0.0.1") == "");
  CHECK(d.core.full(d.now));
  d.now += 250ms;
  CHECK_FALSE(d.core.full(d.now));
  CHECK(d.comes("10.0.0.2") == "drop 1");
}
