#include "probe/ring_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::probe;
using namespace troupe::messages;

namespace {

constexpr std::uint32_t devices_each = 4;

messages::msg<GroupProbeWanted> wanted(std::uint32_t members, std::uint32_t place) {
  return local<GroupProbeWanted>("master", [&](GroupProbeWanted::Builder b) {
    b.setCheck(7);
    b.setRound(1);
    auto all = b.initMembers(members);
    for (std::uint32_t m = 0; m < members; ++m)
      all[m].setNode(fmt::format("n{}", m));
    b.setPlace(place);
    auto sizes = b.initSizes(2);
    sizes.set(0, 4'096);
    sizes.set(1, 1u << 20);
    b.setRepeats(5);
    b.setWithinMs(10'000);
    b.setDevices(devices_each);
    b.setFirstRank(place * devices_each);
    b.setRanks(members * devices_each);
  });
}

/// Members with devices, and what is between them.
class members {
 public:
  explicit members(std::uint32_t count, ring_core::pay pay = {}, bool paced = false) : n_(count) {
    if (!pay)
      pay = [](instant at, std::uint64_t) { return at; };
    for (std::uint32_t place = 0; place < n_; ++place) {
      auto m = wanted(n_, place);
      if (paced)
        m = altered(m, m.envelope(), [](auto b) { b.setPaced(true); });
      all_.emplace_back(author(fmt::format("n{}", place)), m, now, pay);
    }
  }

  void connect() {
    for (std::uint32_t place = 0; place < n_; ++place) {
      perform(place, all_[place].begin());
      perform(place, all_[place].previous_connected(now));
    }
    for (std::uint32_t place = 0; place < n_; ++place)
      perform(place, all_[place].connected(now));
    run();
  }

  void run() {
    while (!mail_.empty()) {
      const auto next = std::move(mail_.front());
      mail_.pop_front();
      now += 1us;
      next();
    }
  }

  void key_made(const std::string& key = "key") {
    perform(0, all_[0].key_made(now, key));
    run();
  }

  void answer(std::uint32_t place, const std::string& failed = {}, std::uint32_t sizes = 2) {
    perform(place, all_[place].devices_probed(
                       now, local<GroupProbed>("probe", [&](GroupProbed::Builder b) {
                         b.setFailed(failed);
                         b.setSeconds(0.25);
                         auto all = b.initSizes(sizes);
                         for (std::uint32_t i = 0; i < sizes; ++i) {
                           all[i].setBytes(i == 0 ? 4'096 : 1u << 20);
                           all[i].setAllReduceUs(30);
                           all[i].setAllGatherUs(20);
                         }
                       })));
    run();
  }

  void perform(std::uint32_t place, const ring_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* out = std::get_if<ring_core::to_next>(&e)) {
        post((place + 1) % n_, out->message, true);
      } else if (const auto* back = std::get_if<ring_core::to_previous>(&e)) {
        post((place + n_ - 1) % n_, back->message, false);
      } else if (const auto* devices = std::get_if<ring_core::probe_devices>(&e)) {
        asked.emplace(place, devices->wanted);
      } else if (std::holds_alternative<ring_core::end_devices>(e)) {
        ended.insert(place);
      } else if (const auto* d = std::get_if<ring_core::done>(&e)) {
        reports.emplace(place, d->report);
        lose(place);
      }
  }

  ring_core& at(std::uint32_t place) { return all_[place]; }
  std::string failed(std::uint32_t place) const {
    return reports.at(place).read()->getFailed().cStr();
  }
  std::string key_of(std::uint32_t place) const {
    auto m = asked.at(place).read();
    const auto key = m->getKey().asChars();
    return {key.begin(), key.size()};
  }

  instant now{1s};
  std::map<std::uint32_t, messages::msg<DevicesProbeWanted>> asked;
  std::map<std::uint32_t, messages::msg<GroupProbed>> reports;
  std::set<std::uint32_t> ended;

 private:
  void post(std::uint32_t to, const any_msg& m, bool from_previous) {
    mail_.push_back([this, to, m, from_previous] {
      auto& ring = all_[to];
      if (m.is<ProbePart>())
        perform(to, ring.part(now, m.as<ProbePart>()));
      else if (m.is<ProbeTaken>())
        perform(to, ring.taken(now, m.as<ProbeTaken>()));
      else if (m.is<ProbeKey>())
        perform(to, ring.key(now, m.as<ProbeKey>()));
      else
        perform(to, from_previous ? ring.previous_passed(now) : ring.next_passed(now));
    });
  }
  /// Behind all that it has said.
  void lose(std::uint32_t place) {
    const auto before = (place + n_ - 1) % n_, behind = (place + 1) % n_;
    mail_.push_back([this, before, behind] {
      perform(before, all_[before].next_lost(now, "closed"));
      perform(behind, all_[behind].previous_lost(now, "closed"));
    });
  }

  const std::uint32_t n_;
  std::vector<ring_core> all_;
  std::deque<std::function<void()>> mail_;
};

} // namespace

TEST_SUITE("a ring whose members have devices") {
  TEST_CASE("the key goes around, all devices get it, and what they measured is reported") {
    for (const std::uint32_t count : {2u, 3u, 7u}) {
      CAPTURE(count);
      members m(count);
      m.connect();
      // Laps only, then the first one's devices make the key.
      REQUIRE(m.asked.size() == 1);
      CHECK(m.key_of(0).empty());
      m.key_made("a\0b");
      REQUIRE(m.asked.size() == count);
      for (std::uint32_t place = 1; place < count; ++place) {
        CHECK(m.key_of(place) == "a\0b");
        auto asked = m.asked.at(place).read();
        CHECK(asked->getGroup().getFirstRank() == place * devices_each);
        CHECK(asked->getGroup().getWithinMs() < 10'000 - 499);
        CHECK(asked->getGroup().getWithinMs() > 9'000);
      }
      for (std::uint32_t place = 0; place < count; ++place) {
        // It waits for both of its neighbours.
        CHECK(m.reports.count(place) == 0);
        m.answer(place);
      }
      REQUIRE(m.reports.size() == count);
      CHECK(m.ended.empty());
      for (const auto& [place, report] : m.reports) {
        CHECK(m.failed(place) == "");
        auto r = report.read();
        CHECK(r->getNode() == fmt::format("n{}", place));
        CHECK(r->getSeconds() == 0.25);
        CHECK(r->getLatencyUs() > 0);
        REQUIRE(r->getSizes().size() == 2);
        CHECK(r->getSizes()[1].getAllReduceUs() == 30);
      }
    }
  }

  TEST_CASE("devices that fail end the probe of all, and each ends its own devices' process") {
    members m(3);
    m.connect();
    m.key_made();
    m.answer(1, "unhandled system error");
    REQUIRE(m.reports.size() == 3);
    CHECK(m.failed(1) == "unhandled system error");
    CHECK(m.failed(0) == "the link to n1 was lost: closed");
    CHECK(m.failed(2) == "the link from n1 was lost: closed");
    CHECK(m.ended == std::set<std::uint32_t>{0, 2});
  }

  TEST_CASE("a member that has passed may end, and one that has not may not") {
    members m(3);
    m.connect();
    m.key_made();
    m.answer(0);
    m.answer(1);
    m.perform(0, m.at(0).next_lost(m.now, "closed"));
    CHECK(m.reports.empty());
    m.perform(0, m.at(0).previous_lost(m.now, "reset"));
    CHECK(m.failed(0) == "the link from n2 was lost: reset");
    // Its own have answered: nothing is left to end.
    CHECK(m.ended.count(0) == 0);
  }

  TEST_CASE("what devices have not measured is not believed") {
    members m(2);
    m.connect();
    m.key_made();
    m.answer(0, {}, 1);
    CHECK(m.failed(0) == "its devices have not measured what they were to");
  }

  TEST_CASE("a key that is not due is not believed") {
    const auto of = [](std::size_t bytes) {
      const std::string key(bytes, 'k');
      return local<ProbeKey>("n0", [&](auto b) {
        b.setKey(kj::arrayPtr(reinterpret_cast<const kj::byte*>(key.data()), key.size()));
      });
    };
    members early(2);
    early.perform(1, early.at(1).key(early.now, of(3)));
    CHECK(early.failed(1) == "n0 gave a key of 3 bytes that is not due");
    for (const auto bytes : {std::size_t{0}, limits::probe_key_max + 1}) {
      members m(2);
      m.connect();
      m.perform(1, m.at(1).key(m.now, of(bytes)));
      CHECK(m.failed(1) == fmt::format("n0 gave a key of {} bytes that is not due", bytes));
    }
    members twice(2);
    twice.connect();
    twice.key_made();
    twice.perform(1, twice.at(1).key(twice.now, of(3)));
    CHECK(twice.reports.count(1) == 1);
    CHECK(twice.ended.count(1) == 1);
    members made(2);
    made.connect();
    made.key_made(std::string(limits::probe_key_max + 1, 'k'));
    CHECK(made.failed(0) == "its devices have made a key of 8193 bytes");
  }

  TEST_CASE("the member that is late is named") {
    const auto late = [](members& m, std::uint32_t place) {
      m.now += 11s;
      m.perform(place, m.at(place).tick(m.now));
      const std::string peer = m.reports.at(place).read()->getPeer().cStr();
      return m.failed(place).substr(m.failed(place).find(": ") + 2) + " / " + peer;
    };
    members no_key(2);
    no_key.connect();
    CHECK(late(no_key, 1) == "n0 gave no key for the devices / n0");
    members silent(3);
    silent.connect();
    silent.key_made();
    CHECK(late(silent, 1) == "its devices have not answered / ");
    CHECK(silent.ended.count(1) == 1);
    members others(3);
    others.connect();
    others.key_made();
    others.answer(1);
    CHECK(late(others, 1) == "the devices of n0 have not passed / n0");
    members next(3);
    next.connect();
    next.key_made();
    next.answer(1);
    next.answer(0);
    CHECK(late(next, 1) == "the devices of n2 have not passed / n2");
  }

  TEST_CASE("a key does not overtake what is sent before it") {
    instant paid_until{};
    members m(
        3,
        [&paid_until](instant at, std::uint64_t) {
          if (at < paid_until)
            return paid_until;
          paid_until = at + 1ms;
          return at;
        },
        true);
    m.connect();
    for (int i = 0; i < 1'000 && m.asked.empty(); ++i) {
      m.now += 1ms;
      for (std::uint32_t place = 0; place < 3; ++place)
        m.perform(place, m.at(place).tick(m.now));
      m.run();
    }
    REQUIRE(m.asked.size() == 1);
    m.key_made();
    CHECK(m.asked.size() == 3);
    CHECK(m.reports.empty());
  }

  TEST_CASE("what is asked for is bounded") {
    const auto why = [](const std::function<void(GroupProbeWanted::Builder)>& change) {
      const auto m = wanted(2, 1);
      return ring_core::validation_error(*altered(m, m.envelope(), change).read());
    };
    CHECK(why([](auto) {}).empty());
    CHECK(why([](auto b) { b.setDevices(65); }) == "65 devices from rank 4 of 8");
    CHECK(why([](auto b) { b.setFirstRank(5); }) == "4 devices from rank 5 of 8");
    CHECK(why([](auto b) { b.setFirstRank(0); }) == "4 devices from rank 0 of 8");
    CHECK(why([](auto b) { b.setRanks(1); }) == "4 devices from rank 4 of 1");
    CHECK(why([](auto b) { b.setRanks(0xffffffff); }) == "4 devices from rank 4 of 4294967295");
  }
}
