#include "actors/node_supervisor/network_prober/network_prober_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::messages;

namespace {

using core = network_prober_core;
using link_id = core::link_id;

messages::msg<GroupProbeWanted> wanted(std::uint32_t members, std::uint32_t place,
                                       std::uint64_t check = 1, std::uint32_t round = 1,
                                       bool with_addresses = true) {
  return local<GroupProbeWanted>("master/network_check", [&](GroupProbeWanted::Builder b) {
    b.setCheck(check);
    b.setRound(round);
    auto all = b.initMembers(members);
    for (std::uint32_t m = 0; m < members; ++m) {
      all[m].setNode(fmt::format("n{}", m));
      if (with_addresses)
        all[m].setAddress(fmt::format("10.0.0.{}", m));
      all[m].setPort(static_cast<std::uint16_t>(4'000 + m));
    }
    b.setPlace(place);
    b.initSizes(1).set(0, 4'096);
    b.setRepeats(1);
    b.setWithinMs(10'000);
  });
}

/// The same, of nodes with two devices each.
messages::msg<GroupProbeWanted> wanted_of_devices(std::uint32_t members, std::uint32_t place,
                                                  std::uint32_t round = 1) {
  const auto m = wanted(members, place, 1, round);
  return altered(m, m.envelope(), [&](GroupProbeWanted::Builder b) {
    b.setDevices(2);
    b.setFirstRank(2 * place);
    b.setRanks(2 * members);
  });
}

/// Probers of several nodes, with links between them that deliver one message after the other.
class probers {
 public:
  explicit probers(std::uint32_t count) {
    for (std::uint32_t n = 0; n < count; ++n)
      all_.emplace_back(
          fmt::format("n{}", n), author("network_prober"),
          [](instant at, std::uint64_t) { return at; }, "10.0.0.99");
  }

  core& at(std::uint32_t n) { return all_[n]; }

  void perform(std::uint32_t n, const core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* d = std::get_if<core::dial>(&e))
        dial(n, *d);
      else if (const auto* s = std::get_if<core::say>(&e))
        say(n, s->link, s->message);
      else if (const auto* c = std::get_if<core::close>(&e))
        close(n, c->link);
      else if (const auto* r = std::get_if<core::report>(&e))
        reports[n].push_back(r->message);
      else if (const auto* devices = std::get_if<core::probe_devices>(&e))
        asked[n] = *devices;
      else if (std::holds_alternative<core::end_probe>(e))
        ++ended[n];
      else
        ++own_probes;
  }

  void key_made(std::uint32_t n) {
    perform(n, all_[n].key_made(now, asked.at(n).number, "key"));
    run();
  }
  void devices_probed(std::uint32_t n, std::uint64_t number, const std::string& failed = {}) {
    perform(n, all_[n].devices_probed(now, number,
                                      local<GroupProbed>("probe", [&](GroupProbed::Builder b) {
                                        b.setFailed(failed);
                                        b.initSizes(1)[0].setBytes(4'096);
                                      })));
    run();
  }

  void ask(std::uint32_t n, const messages::msg<GroupProbeWanted>& m) {
    perform(n, all_[n].group_probe_wanted(now, m));
  }

  void run() {
    while (!mail_.empty()) {
      const auto deliver = std::move(mail_.front());
      mail_.pop_front();
      now += 1us;
      deliver();
    }
  }

  std::string failed(std::uint32_t n) const {
    return reports.at(n).back().as<GroupProbed>().read()->getFailed().cStr();
  }

  instant now{1s};
  std::map<std::uint32_t, std::vector<any_msg>> reports;
  std::set<std::uint32_t> unreachable;
  int own_probes = 0;
  std::map<std::uint32_t, core::probe_devices> asked; ///< the newest
  std::map<std::uint32_t, int> ended;

 private:
  using end = std::pair<std::uint32_t, link_id>;

  void dial(std::uint32_t from, const core::dial& d) {
    const auto to = static_cast<std::uint32_t>(d.port - 4'000);
    mail_.push_back([this, from, to, link = d.link] {
      if (unreachable.count(to) != 0)
        return perform(from, all_[from].not_connected(now, link, "connection refused", false));
      const end near{from, link}, far{to, ++last_};
      other_.emplace(near, far);
      other_.emplace(far, near);
      perform(to, all_[to].arrived(now, far.second, fmt::format("n{}", from)));
      perform(from, all_[from].connected(now, link));
    });
  }
  void say(std::uint32_t n, link_id link, const any_msg& m) {
    const auto far = other_.find({n, link});
    if (far == other_.end())
      return;
    mail_.push_back(
        [this, to = far->second, m] { perform(to.first, all_[to.first].said(now, to.second, m)); });
  }
  void close(std::uint32_t n, link_id link) {
    const auto far = other_.find({n, link});
    if (far == other_.end())
      return;
    mail_.push_back([this, to = far->second] {
      perform(to.first, all_[to.first].gone(now, to.second, "closed"));
    });
  }

  std::deque<core> all_;
  std::map<end, end> other_;
  std::deque<std::function<void()>> mail_;
  link_id last_ = 0;
};

} // namespace

TEST_SUITE("network_prober_core") {
  TEST_CASE("members that are asked in any order find each other") {
    for (const std::uint32_t first : {0u, 1u, 2u}) {
      probers p(3);
      for (std::uint32_t i = 0; i < 3; ++i) {
        // What the first one sends waits at a member that was not asked yet.
        p.ask((first + i) % 3, wanted(3, (first + i) % 3));
        p.run();
      }
      for (std::uint32_t n = 0; n < 3; ++n) {
        REQUIRE(p.reports[n].size() == 1);
        CHECK(p.failed(n).empty());
        CHECK(p.at(n).in_words() == "idle");
      }
    }
  }

  TEST_CASE("a member without an address is where the master is") {
    for (const bool said : {true, false}) {
      core one(
          "n0", author("network_prober"), [](instant at, std::uint64_t) { return at; }, "10.1.1.1");
      const auto begun = one.group_probe_wanted(instant{1s}, wanted(2, 0, 1, 1, said));
      const auto& d = std::get<core::dial>(begun.at(0));
      CHECK(d.host == (said ? "10.0.0.1" : "10.1.1.1"));
      CHECK(d.port == 4'001);
    }
  }

  TEST_CASE("the same request twice is one") {
    probers p(2);
    p.ask(0, wanted(2, 0));
    p.ask(0, wanted(2, 0));
    p.ask(1, wanted(2, 1));
    p.run();
    CHECK(p.reports[0].size() == 1);
    CHECK(p.failed(0).empty());
  }

  TEST_CASE("a newer request ends an older one") {
    for (const auto& [check, round] : {std::pair{1u, 2u}, std::pair{2u, 1u}}) {
      probers p(2);
      p.ask(0, wanted(2, 0));
      p.run();
      p.ask(0, wanted(2, 0, check, round));
      p.ask(1, wanted(2, 1, check, round));
      p.run();
      REQUIRE(p.reports[0].size() == 2);
      const std::string early = p.reports[0][0].as<GroupProbed>().read()->getFailed().cStr();
      CHECK(early.find(": n1 did not connect; another group is probed") != std::string::npos);
      CHECK(p.failed(0).empty());
      CHECK(p.failed(1).empty());
    }
  }

  TEST_CASE("a member that is not reached yet is dialled again") {
    probers p(2);
    p.unreachable.insert(1);
    p.ask(0, wanted(2, 0));
    p.ask(1, wanted(2, 1));
    p.run();
    CHECK(p.reports[0].empty());
    p.unreachable.clear();
    p.now += 1s;
    p.perform(0, p.at(0).tick(p.now));
    p.run();
    CHECK(p.failed(0).empty());
    CHECK(p.failed(1).empty());
  }

  TEST_CASE("when one gives up, its neighbours hear of it") {
    probers p(2);
    p.ask(0, wanted(2, 0));
    p.ask(1, wanted(2, 1));
    p.now += limits::ring_connect_within;
    p.perform(0, p.at(0).tick(p.now));
    p.run();
    CHECK(p.failed(0) == "after 5.0 s: n1 could not be reached: no answer");
    // The dials that were under way come to nothing.
    CHECK(p.reports[1].empty());
    p.perform(1, p.at(1).tick(p.now));
    CHECK(p.failed(1) == "after 5.0 s: n0 did not connect");
  }

  TEST_CASE("links that belong to no probe go: by what they say, by their number, by time") {
    probers p(1);
    auto& one = p.at(0);
    const auto closes = [](const core::effects& effects) {
      return effects.size() == 1 && std::holds_alternative<core::close>(effects.front());
    };
    CHECK(one.arrived(p.now, 1, "n9").empty());
    CHECK(closes(one.said(p.now, 1, local<ProbePart>("n9").any())));
    CHECK(one.arrived(p.now, 2, "n9").empty());
    CHECK(one.said(p.now, 2, local<ProbeBegin>("n9").any()).empty());
    CHECK(one.said(p.now, 2, local<ProbePart>("n9").any()).empty());
    CHECK(closes(one.said(p.now, 2, local<ProbePart>("n9").any())));
    for (link_id link = 10; link < 10 + limits::ring_links_waiting_max; ++link)
      CHECK(one.arrived(p.now, link, "n9").empty());
    CHECK(closes(one.arrived(p.now, 99, "n9")));
    p.now += limits::ring_link_waits;
    CHECK(one.tick(p.now).size() == limits::ring_links_waiting_max);
    CHECK_FALSE(one.next_wakeup());
  }

  TEST_CASE("a node that is not the neighbour is not taken for it") {
    probers p(2);
    p.ask(1, wanted(2, 1));
    auto& one = p.at(1);
    CHECK(one.arrived(p.now, 7, "n9").empty());
    const auto begin = local<ProbeBegin>("n9", [](auto b) {
      b.setCheck(1);
      b.setRound(1);
      b.setPlace(0);
    });
    CHECK(one.said(p.now, 7, begin.any()).empty());
    CHECK(one.arrived(p.now, 8, "n0").empty());
    CHECK(one.said(p.now, 8, begin.any()).empty());
    // Only the second is in the ring: its loss ends the probe.
    CHECK(one.gone(p.now, 7, "reset").empty());
    p.perform(1, one.gone(p.now, 8, "reset"));
    CHECK(p.failed(1) == "the link from n0 was lost: reset");
  }

  TEST_CASE("what can not be meant is answered with a reason") {
    probers p(1);
    p.perform(0, p.at(0).group_probe_wanted(p.now, wanted(2, 5)));
    CHECK(p.failed(0) == "the master asks for place 5 of 2 members");
    CHECK(p.reports[0].front().as<GroupProbed>().read()->getNode() == "n0");
  }

  TEST_CASE("the node itself is probed by its host") {
    probers p(1);
    p.perform(0, p.at(0).node_probe_wanted(p.now, local<NodeProbeWanted>("master")));
    CHECK(p.own_probes == 1);
    CHECK(p.at(0).in_words() == "probes this node");
    p.perform(0, p.at(0).node_probed(p.now, local<NodeProbed>("n0")));
    CHECK(p.reports[0].size() == 1);
  }

  TEST_CASE("devices of a group find each other by a key that goes around") {
    probers p(3);
    for (std::uint32_t n = 0; n < 3; ++n)
      p.ask(n, wanted_of_devices(3, n));
    p.run();
    CHECK(p.asked.size() == 1);
    p.key_made(0);
    REQUIRE(p.asked.size() == 3);
    for (std::uint32_t n = 0; n < 3; ++n)
      p.devices_probed(n, p.asked.at(n).number);
    for (std::uint32_t n = 0; n < 3; ++n) {
      REQUIRE(p.reports[n].size() == 1);
      CHECK(p.failed(n).empty());
      CHECK(p.at(n).in_words() == "idle");
    }
    CHECK(p.ended.empty());
  }

  TEST_CASE("devices that nothing waits for are told so, and what they answer is dropped") {
    probers p(2);
    for (std::uint32_t n = 0; n < 2; ++n)
      p.ask(n, wanted_of_devices(2, n));
    p.run();
    p.key_made(0);
    const auto old = p.asked.at(0).number;
    for (std::uint32_t n = 0; n < 2; ++n)
      p.ask(n, wanted_of_devices(2, n, 2));
    p.run();
    CHECK(p.ended[0] == 1);
    CHECK(p.ended[1] == 1);
    CHECK(p.asked.at(0).number != old);
    p.devices_probed(0, old, "it was ended");
    CHECK(p.reports[0].size() == 1);
    p.key_made(0);
    for (std::uint32_t n = 0; n < 2; ++n)
      p.devices_probed(n, p.asked.at(n).number);
    CHECK(p.failed(0).empty());
    CHECK(p.failed(1).empty());
  }

  TEST_CASE("a node that is asked about itself leaves its group first") {
    probers p(2);
    for (std::uint32_t n = 0; n < 2; ++n)
      p.ask(n, wanted_of_devices(2, n));
    p.run();
    p.key_made(0);
    p.perform(0, p.at(0).node_probe_wanted(p.now, local<NodeProbeWanted>("master")));
    p.run();
    CHECK(p.failed(0).find("; the node is probed by itself") != std::string::npos);
    CHECK(p.ended[0] == 1);
    CHECK(p.own_probes == 1);
    CHECK(p.failed(1).find("the link ") == 0);
    CHECK(p.ended[1] == 1);
  }
}
