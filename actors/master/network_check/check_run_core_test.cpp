#include "actors/master/network_check/testing/check_story.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::messages;
using testing::story;

TEST_SUITE("a check of nodes") {
  TEST_CASE("two good nodes: each by itself, then together") {
    story s;
    CHECK(s.begins(2) == "alone n0* n1");
    CHECK(s.probed(0) == "");
    CHECK(s.probed(1) == "0: n0 n1");
    CHECK(s.group(0, 0) == "");
    CHECK(s.group(1, 0) == "good n0 n1; leave; undecided");
    CHECK(s.noted("all are good"));
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("a node that fails by itself is in no group, and its machine is marked") {
    story s;
    s.begins(3);
    s.probed(0);
    s.probed(1, 0.1, "device 3 has uncorrectable memory errors");
    CHECK(s.probed(2) == "0: n0 n2");
    s.group(0, 0);
    CHECK(s.group(2, 0) == "mark n1 at 10.0.0.1; good n0 n2; leave n1; undecided");
    CHECK(s.noted("device 3 has uncorrectable memory errors"));
  }

  TEST_CASE("a node that does not answer costs what the others needed, many times, and no more") {
    network_check_options o;
    o.within = 300s;
    story s(o);
    s.begins(4);
    s.now += 200ms;
    s.probed(0);
    CHECK(s.core.next_wakeup() == s.now - 200ms + 302s);
    s.probed(1);
    CHECK(s.core.next_wakeup() == s.now - 200ms + 5s);
    s.now += 800ms;
    s.probed(2);
    CHECK(s.core.next_wakeup() == s.now + 4s);
    CHECK(s.passes(4s) == "0: n0 n1 n2");
  }

  TEST_CASE("no patience is longer than the limit") {
    network_check_options o;
    o.within = 10s;
    story s(o);
    s.begins(2);
    s.now += 9s;
    s.probed(0);
    CHECK(s.core.next_wakeup() == instant{1s} + 12s);
  }

  TEST_CASE("what comes from another check, another round or twice is dropped") {
    story s;
    s.begins(2);
    const auto check = std::exchange(s.check, 7);
    CHECK(s.probed(0) == "");
    CHECK(s.probed(1) == "");
    s.check = check;
    s.probed(0);
    CHECK(s.probed(0, 50) == "");
    CHECK(s.probed(1) == "0: n0 n1");
    const auto round = std::exchange(s.round, 9);
    CHECK(s.group(0, 0) == "");
    s.round = round;
    CHECK(s.group(0, 1) == "");
    CHECK(s.group(0, 0) == "");
    CHECK(s.group(0, 0) == "");
    CHECK(s.group(1, 0) == "good n0 n1; leave; undecided");
  }

  TEST_CASE("one of four fails with each partner: it leaves, and the others stay") {
    story s;
    s.begins(4);
    for (std::uint32_t n = 0; n < 4; ++n)
      s.probed(n);
    std::string said;
    // n3 works by itself, and every group with it fails.
    for (int rounds = 0; rounds < 8 && said.find("good") == std::string::npos; ++rounds) {
      const auto members = story::asked_in(rounds == 0 ? "0: n0 n1 | 1: n2 n3" : said);
      for (const auto& [group, n] : members) {
        const bool bad =
            std::find(members.begin(), members.end(), std::pair{group, 3u}) != members.end();
        said = s.group(n, group, 0.1, bad ? "the link was lost" : "");
      }
    }
    CHECK(said == "mark n3 at 10.0.0.3; good n0 n1 n2; leave n3; undecided");
  }

  TEST_CASE("two that fail with each other: which one it is, is not said") {
    story s;
    s.begins(2);
    s.probed(0);
    s.probed(1);
    std::string said;
    for (int i = 0; i < 8 && said.find("good") == std::string::npos; ++i) {
      s.group(0, 0, 0, "cut");
      said = s.group(1, 0, 0, "cut");
    }
    CHECK(said == "good; leave; undecided n0 n1");
    CHECK(s.noted("it cannot be told which node or link it was"));
  }

  TEST_CASE("a node that is slow once is probed again, and only a second time tells") {
    story s;
    s.begins(3);
    s.probed(0, 0.1);
    s.probed(1, 0.1);
    CHECK(s.probed(2, 0.5) == "alone n2");
    CHECK(s.probed(2, 0.12) == "0: n0 n1 n2");
    story slow;
    slow.begins(3);
    slow.probed(0, 0.1);
    slow.probed(1, 0.1);
    slow.probed(2, 0.5);
    slow.probed(2, 0.4);
    slow.group(0, 0);
    slow.group(1, 0);
    CHECK(slow.group(2, 0) == "good n0 n1 n2; leave; undecided");
    CHECK(slow.noted("node n2 is slow: its own probe takes 0.4 s"));
  }

  TEST_CASE("a difference of milliseconds makes no node slow") {
    story s;
    s.begins(3);
    s.probed(0, 0.001);
    s.probed(1, 0.001);
    CHECK(s.probed(2, 0.099) == "0: n0 n1 n2");
  }

  TEST_CASE("a slow node leaves if that is asked for") {
    network_check_options o;
    o.policy.exclude_straggler = true;
    story s(o);
    s.begins(3);
    s.probed(0);
    s.probed(1);
    s.probed(2, 0.5);
    s.probed(2, 0.5);
    s.group(0, 0);
    s.group(1, 0);
    CHECK(s.group(2, 0) == "good n0 n1; leave n2; undecided");
  }

  TEST_CASE("a node that is lost during the check is waited for no longer") {
    story s;
    s.begins(3);
    s.probed(0);
    s.probed(1);
    CHECK(s.lost(2) == "0: n0 n1");
    s.group(0, 0);
    CHECK(s.group(1, 0) == "good n0 n1; leave n2; undecided");
    story between;
    between.begins(2);
    between.probed(0);
    between.probed(1);
    between.group(0, 0, 0, "the link was lost");
    CHECK(between.lost(1) == "good n0; leave n1; undecided");
  }

  TEST_CASE("beside others that train a newcomer has no partners") {
    story s;
    CHECK(s.begins(1, true) == "alone n0*");
    CHECK(s.probed(0) == "good n0; leave; undecided");
  }

  TEST_CASE("a newer question takes the place of the one that is under way") {
    story s;
    s.begins(2);
    s.probed(0);
    const auto old = s.check;
    CHECK(s.begins(3) == "alone n0* n1 n2");
    CHECK(s.check == old + 1);
  }

  TEST_CASE("switches between devices are looked at when that is asked for") {
    network_check_options o;
    o.box_pairs = {{0, 1}, {2, 4}};
    story s(o);
    s.begins(1);
    CHECK(s.boxes == 2);
    story without;
    without.begins(1);
    CHECK(without.boxes == 0);
  }
}
