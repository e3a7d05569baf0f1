#include "actors/node_supervisor/neighbours/neighbours_core.hpp"

#include "actors/limits.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::messages;

namespace {

using phase = neighbours_core::phase;
using link_id = neighbours_core::link_id;

msg<MasterReach> reach(MasterReach::Reach r, unsigned neighbours = 3, std::uint64_t outage = 1,
                       std::uint64_t follows = 5) {
  return local<MasterReach>("uplink", [&](MasterReach::Builder b) {
    b.setReach(r);
    b.setOutage(outage);
    b.setFollows(follows);
    auto all = b.initNeighbours(neighbours);
    for (unsigned n = 0; n < neighbours; ++n) {
      all[n].setNode(fmt::format("n{}", n));
      all[n].setAddress(fmt::format("10.0.0.{}", n));
      all[n].setPort(static_cast<std::uint16_t>(4'000 + n));
    }
  });
}

/// A node and its neighbours n0, n1, n2.
struct story {
  explicit story(duration lease = limits::lease) : core(author("neighbours"), lease) {}

  neighbours_core core;
  instant now{1s};
  std::map<std::string, link_id> dialled;

  /// "dial 10.0.0.0:4000, tell n1"
  std::string text(const neighbours_core::effects& effects) {
    std::string all;
    for (const auto& e : effects) {
      std::string one;
      if (const auto* d = std::get_if<neighbours_core::dial>(&e)) {
        dialled[fmt::format("n{}", d->port - 4'000)] = d->link;
        one = fmt::format("dial {}:{}", d->host, d->port);
      } else if (const auto* s = std::get_if<neighbours_core::say>(&e)) {
        one = s->message.is<MasterSought>()                      ? "ask"
              : s->message.as<MasterKnown>().read()->getLinked() ? "linked"
                                                                 : "not linked";
      } else if (std::holds_alternative<neighbours_core::close>(e)) {
        one = "close";
      } else {
        auto m = std::get<neighbours_core::tell>(e).message.read();
        one = fmt::format("tell {} of {}", m->getHasIt().size() > 0 ? m->getHasIt().cStr() : "none",
                          m->getAsked());
      }
      all += (all.empty() ? "" : ", ") + one;
    }
    return all;
  }

  std::string is(MasterReach::Reach r, unsigned neighbours = 3) {
    return text(core.reach(now, reach(r, neighbours)));
  }
  /// To the next moment at which something is due.
  std::string waits() {
    const auto at = core.next_wakeup();
    REQUIRE(at);
    now = std::max(now, *at);
    return text(core.tick(now));
  }
  std::string connects(const std::string& n) { return text(core.connected(now, dialled.at(n))); }
  std::string fails(const std::string& n, bool answers) {
    return text(core.not_connected(now, dialled.at(n), answers));
  }
  std::string says(const std::string& n, bool linked, duration since = 1h) {
    const auto known = local<MasterKnown>("n", [&](auto b) {
      b.setLinked(linked);
      b.setSinceMs(static_cast<std::uint64_t>(milliseconds_of(since)));
    });
    return text(core.said(now, dialled.at(n), known.any()));
  }

  /// Asked in this round and the next, it says that it has had the master all the time.
  std::string says_twice(const std::string& n) {
    CHECK(says(n, true) == "close");
    waits();
    CHECK(connects(n) == "ask");
    return says(n, true);
  }

  /// It has missed its master for a second, and asks.
  void asks() {
    is(MasterReach::Reach::MISSED);
    const auto begun = now;
    CHECK(waits() == "dial 10.0.0.0:4000, dial 10.0.0.1:4001, dial 10.0.0.2:4002");
    CHECK(now == begun + limits::noticed_apart(limits::lease));
  }
};

} // namespace

TEST_SUITE("neighbours_core") {
  TEST_CASE("a node that has its master, or of which nothing depends on it, asks for nothing") {
    story s;
    CHECK(s.is(MasterReach::Reach::LINKED) == "");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.is(MasterReach::Reach::ABSENT) == "");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.core.current_phase() == phase::calm);
  }

  TEST_CASE("one of them has the master, and has it still when it is asked again") {
    story s;
    s.asks();
    CHECK(s.connects("n1") == "ask");
    CHECK(s.says_twice("n1") == "close, tell n1 of 3");
    CHECK(s.core.current_phase() == phase::told);
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.is(MasterReach::Reach::ABSENT) == "close, close");
    // And again the next time.
    s.asks();
  }

  TEST_CASE("none of them has it either: the master is away, for as long as one says so") {
    story s;
    s.asks();
    for (int round = 0; round < 60; ++round) {
      CHECK(s.connects("n2") == "ask");
      CHECK(s.says("n2", false) == "close");
      const auto asked_at = s.now;
      CHECK(s.waits().find("dial 10.0.0.2:4002") != std::string::npos);
      CHECK(s.now - asked_at == limits::neighbours_asked_every);
    }
    CHECK(s.core.current_phase() == phase::asking);
  }

  TEST_CASE("none of them answers") {
    story s;
    const auto missed = s.now;
    s.asks();
    std::string said;
    while (said.find("tell") == std::string::npos)
      said = s.waits();
    CHECK(said == "tell none of 3");
    CHECK(s.now - missed == limits::neighbours_silent_within(limits::lease));
  }

  TEST_CASE("a link that comes is a sign of life, and one that says nothing is none later") {
    story s;
    s.asks();
    s.now += 4s;
    for (const auto* n : {"n0", "n1", "n2"})
      s.connects(n);
    const auto connected = s.now;
    std::string said;
    while (said.find("tell") == std::string::npos)
      said = s.waits();
    CHECK(said == "tell none of 3");
    CHECK(s.now - connected == limits::neighbours_silent_within(limits::lease));
  }

  TEST_CASE("a neighbour that has the master again is no proof that it was there") {
    story s;
    const auto missed = s.now;
    s.asks();
    s.connects("n1");
    CHECK(s.says("n1", true, s.now - missed + limits::noticed_apart(limits::lease) - 1ms) ==
          "close");
    CHECK(s.core.current_phase() == phase::asking);
    s.waits();
    s.connects("n1");
    CHECK(s.says("n1", true, s.now - missed + limits::noticed_apart(limits::lease)) == "close");
    s.waits();
    s.connects("n1");
    CHECK(s.says("n1", true, s.now - missed + limits::noticed_apart(limits::lease)) ==
          "close, tell n1 of 3");
  }

  TEST_CASE("this process stood still: what its neighbours said meanwhile is heard first") {
    story s;
    s.asks();
    s.now += 60s;
    CHECK(s.text(s.core.tick(s.now)).find("tell") == std::string::npos);
    s.connects("n1");
    CHECK(s.says("n1", false) == "close");
    CHECK(s.core.current_phase() == phase::asking);
    // And if there is nothing to hear:
    story silent;
    silent.asks();
    silent.now += 60s;
    const auto resumed = silent.now;
    std::string said = silent.text(silent.core.tick(silent.now));
    while (said.find("tell") == std::string::npos)
      said = silent.waits();
    CHECK(silent.now - resumed <= limits::neighbours_asked_every);
  }

  TEST_CASE("the longer the lease, the later they notice, and are asked") {
    story s(10s);
    s.is(MasterReach::Reach::MISSED);
    const auto begun = s.now;
    s.waits();
    CHECK(s.now - begun == 5s);
  }

  TEST_CASE("the master is missed anew: what was asked before is not about it") {
    story s;
    s.asks();
    const auto old = s.dialled;
    s.text(s.core.reach(s.now, reach(MasterReach::Reach::MISSED, 3, 2)));
    CHECK(s.core.current_phase() == phase::asking);
    CHECK(s.text(s.core.connected(s.now, old.at("n1"))) == "close");
    s.waits();
    s.connects("n1");
    CHECK(s.says_twice("n1") == "close, tell n1 of 3");
  }

  TEST_CASE("one that stood still answers before it looks, and the next time that it has it not") {
    story s;
    s.asks();
    s.connects("n1");
    CHECK(s.says("n1", true) == "close");
    s.waits();
    s.connects("n1");
    CHECK(s.says("n1", false) == "close");
    // Nor do two of them prove what one has not said twice.
    s.waits();
    s.connects("n2");
    CHECK(s.says("n2", true) == "close");
    CHECK(s.core.current_phase() == phase::asking);
  }

  TEST_CASE("a dial into the void is made again, and the first is heard should it come through") {
    story s;
    s.asks();
    const auto first = s.dialled;
    std::string said;
    while (said.find("dial") == std::string::npos)
      said = s.waits();
    CHECK(said ==
          "close, dial 10.0.0.0:4000, close, dial 10.0.0.1:4001, close, dial 10.0.0.2:4002");
    const auto until = *s.core.next_wakeup();
    s.now += 500ms;
    CHECK(s.text(s.core.not_connected(s.now, first.at("n0"), true)) == "");
    CHECK(s.text(s.core.connected(s.now, first.at("n1"))) == "close");
    CHECK(until >= s.now);
    while (said.find("tell") == std::string::npos)
      said = s.waits();
    CHECK(s.now - (until - limits::neighbours_asked_every + 500ms) >=
          limits::neighbours_silent_within(limits::lease) - limits::neighbours_asked_every);
  }

  TEST_CASE("another node that asks this one is a sign of life as well") {
    story s;
    s.asks();
    s.now += 3s;
    s.core.arrived(s.now, 7);
    const auto came = s.now;
    std::string said;
    while (said.find("tell") == std::string::npos)
      said = s.waits();
    CHECK(s.now - came == limits::neighbours_silent_within(limits::lease));
  }

  TEST_CASE("a neighbour of an older master than this node has followed does not have it") {
    story s;
    s.is(MasterReach::Reach::LINKED);
    s.text(s.core.arrived(s.now, 1));
    const auto asks_as = [&s](std::uint64_t follows) {
      return s.text(s.core.said(
          s.now, 1, local<MasterSought>("n", [&](auto b) { b.setFollows(follows); }).any()));
    };
    CHECK(asks_as(5) == "linked");
    CHECK(asks_as(6) == "not linked");
  }

  TEST_CASE("a machine that refuses the link answers, and so does a build without the question") {
    story s;
    s.asks();
    SUBCASE("the port is closed") {
      s.fails("n0", true);
    }
    SUBCASE("the node refuses") {
      s.connects("n0");
      CHECK(s.text(s.core.said(s.now, s.dialled.at("n0"),
                               local<Refused>("n", [](auto) {}).any())) == "close");
    }
    const auto answered = s.now;
    std::string said;
    while (said.find("tell") == std::string::npos)
      said = s.waits();
    CHECK(s.now - answered == limits::neighbours_silent_within(limits::lease));
  }

  TEST_CASE("one that cannot be reached is tried again") {
    story s;
    s.asks();
    s.fails("n0", false);
    CHECK(s.waits() == "dial 10.0.0.0:4000");
  }

  TEST_CASE("the master is back meanwhile") {
    story s;
    s.asks();
    s.connects("n0");
    CHECK(s.is(MasterReach::Reach::LINKED) == "close, close, close");
    CHECK(s.says("n0", true) == "");
    CHECK(s.connects("n1") == "close");
    CHECK(s.fails("n2", true) == "");
  }

  TEST_CASE("without neighbours that can be dialled nothing is told") {
    story s;
    s.is(MasterReach::Reach::MISSED, 0);
    CHECK_FALSE(s.core.next_wakeup());
    story without_ports;
    without_ports.core.reach(without_ports.now, local<MasterReach>("uplink", [](auto b) {
                               b.setReach(MasterReach::Reach::MISSED);
                               b.initNeighbours(2);
                             }));
    CHECK_FALSE(without_ports.core.next_wakeup());
  }

  TEST_CASE("it answers others: a link each, for a while, and so many") {
    story s;
    s.text(s.core.arrived(s.now, 1));
    const auto question = local<MasterSought>("n", [](auto) {}).any();
    CHECK(s.text(s.core.said(s.now, 1, question)) == "not linked");
    s.is(MasterReach::Reach::LINKED);
    CHECK(s.text(s.core.said(s.now, 1, question)) == "linked");
    for (link_id link = 2; link <= limits::neighbours_asking_max; ++link)
      CHECK(s.text(s.core.arrived(s.now, link)) == "");
    CHECK(s.text(s.core.arrived(s.now, 99)) == "close");
    s.core.gone(s.now, 1);
    CHECK(s.text(s.core.arrived(s.now, 100)) == "");
    std::string closed;
    for (std::size_t link = 2; link <= limits::neighbours_asking_max; ++link)
      closed += "close, ";
    CHECK(s.waits() == closed + "close");
    CHECK(s.text(s.core.said(s.now, 2, question)) == "");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("in words") {
    story s;
    CHECK(s.core.in_words() == "idle");
    s.is(MasterReach::Reach::LINKED);
    CHECK(s.core.in_words() == "the master is there");
    s.asks();
    CHECK(s.core.in_words() == "asks 3 of 3 other nodes whether the master is there");
  }
}
