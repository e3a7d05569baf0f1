#include "probe/ring_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

using namespace troupe;
using namespace troupe::probe;
using namespace troupe::messages;

namespace {

using body = messages::msg<GroupProbed>;

struct ring_options {
  std::uint32_t members = 2;
  std::vector<std::uint64_t> sizes = {1'024};
  std::uint32_t repeats = 2;
  duration within = 10s;
  bool neighbours_only = false;
  ring_core::pay pay = [](instant now, std::uint64_t) { return now; };
  bool paced = false; ///< others train
};

/// All members of a group, and the links between them, which deliver one message after the other.
class ring_world {
 public:
  explicit ring_world(ring_options o) : n_(o.members) {
    for (std::uint32_t place = 0; place < n_; ++place)
      all_.emplace_back(author(name(place)), wanted(o, place), now, o.pay);
  }

  static std::string name(std::uint32_t place) { return fmt::format("n{}", place); }

  static messages::msg<GroupProbeWanted> wanted(const ring_options& o, std::uint32_t place) {
    return local<GroupProbeWanted>("master", [&](GroupProbeWanted::Builder b) {
      b.setCheck(7);
      b.setRound(1);
      b.setPlace(place);
      const auto told = o.neighbours_only ? 3 : o.members;
      auto members = b.initMembers(told);
      for (std::uint32_t m = 0; m < told; ++m)
        members[m].setNode(name(o.neighbours_only ? (place + o.members - 1 + m) % o.members : m));
      b.setCount(o.neighbours_only ? o.members : 0);
      auto sizes = b.initSizes(static_cast<unsigned>(o.sizes.size()));
      for (unsigned i = 0; i < o.sizes.size(); ++i)
        sizes.set(i, o.sizes[i]);
      b.setRepeats(o.repeats);
      b.setPaced(o.paced);
      b.setWithinMs(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(o.within).count()));
    });
  }

  ring_core& at(std::uint32_t place) { return all_[place]; }
  const std::map<std::uint32_t, body>& reports() const { return reports_; }
  std::string failed(std::uint32_t place) const {
    return reports_.at(place).read()->getFailed().cStr();
  }

  void perform(std::uint32_t place, const ring_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* out = std::get_if<ring_core::to_next>(&e))
        post((place + 1) % n_, out->message);
      else if (const auto* back = std::get_if<ring_core::to_previous>(&e))
        post((place + n_ - 1) % n_, back->message);
      else if (const auto* d = std::get_if<ring_core::dial>(&e))
        CHECK(all_[(place + 1) % n_].is_previous(*d->begin.read()));
      else
        reports_.emplace(place, std::get<ring_core::done>(e).report);
  }

  void connect() {
    for (std::uint32_t place = 0; place < n_; ++place) {
      perform(place, all_[place].begin());
      perform((place + 1) % n_, all_[(place + 1) % n_].previous_connected(now));
    }
    for (std::uint32_t place = 0; place < n_; ++place)
      perform(place, all_[place].connected(now));
  }

  /// Delivers until nothing is on its way.
  void run() {
    while (!mail_.empty()) {
      const auto [to, m] = mail_.front();
      mail_.pop_front();
      now += 1us;
      deliver(to, m);
    }
  }

  /// The link to `place` is slower than the others, until a member has ended.
  void run_with_late_parts(std::uint32_t place) {
    for (;;) {
      const auto next = std::find_if(mail_.begin(), mail_.end(), [place](const auto& letter) {
        return letter.first != place || !letter.second.template is<ProbePart>();
      });
      const bool all_are_late = next == mail_.end();
      if (all_are_late && (mail_.empty() || !reports_.empty()))
        return;
      const auto chosen = all_are_late ? mail_.begin() : next;
      const auto [to, m] = *chosen;
      mail_.erase(chosen);
      now += 1us;
      deliver(to, m);
    }
  }

  void tick_all() {
    for (std::uint32_t place = 0; place < n_; ++place)
      perform(place, all_[place].tick(now));
  }

  std::size_t on_the_way() const { return mail_.size(); }

  instant now{1s};
  std::function<messages::msg<ProbePart>(const messages::msg<ProbePart>&)> damage =
      [](const messages::msg<ProbePart>& m) { return m; };

 private:
  void deliver(std::uint32_t to, const any_msg& m) {
    if (m.is<ProbePart>())
      perform(to, all_[to].part(now, damage(m.as<ProbePart>())));
    else
      perform(to, all_[to].taken(now, m.as<ProbeTaken>()));
  }

  void post(std::uint32_t to, const any_msg& m) { mail_.emplace_back(to, m); }

  const std::uint32_t n_;
  std::vector<ring_core> all_;
  std::deque<std::pair<std::uint32_t, any_msg>> mail_;
  std::map<std::uint32_t, body> reports_;
};

messages::msg<ProbePart> changed(const messages::msg<ProbePart>& m,
                                 const std::function<void(ProbePart::Builder)>& how) {
  return altered(m, m.envelope(), how);
}

} // namespace

TEST_SUITE("a ring") {
  TEST_CASE("rings of any number of members reduce and gather, whatever the sizes") {
    for (const std::uint32_t members : {2u, 3u, 4u, 7u, 16u}) {
      ring_options o;
      o.members = members;
      // Fewer values than members, none that divides evenly, and several parts to a block.
      o.sizes = {4, 404, 1'000'004};
      ring_world w(o);
      w.connect();
      w.run();
      REQUIRE(w.reports().size() == members);
      for (std::uint32_t place = 0; place < members; ++place) {
        CAPTURE(members);
        CAPTURE(place);
        CHECK(w.failed(place).empty());
        auto r = w.reports().at(place).read();
        CHECK(r->getCheck() == 7);
        CHECK(r->getRound() == 1);
        CHECK(r->getSeconds() > 0);
        CHECK(r->getLatencyUs() > 0);
        REQUIRE(r->getSizes().size() == 3);
        CHECK(r->getSizes()[2].getBytes() == 1'000'004);
        CHECK(r->getSizes()[2].getAllReduceUs() > r->getSizes()[0].getAllReduceUs());
      }
    }
  }

  TEST_CASE("members that are told of their neighbours only") {
    ring_options o;
    o.members = 5;
    o.neighbours_only = true;
    ring_world w(o);
    CHECK(w.at(0).previous() == "n4");
    w.connect();
    w.run();
    REQUIRE(w.reports().size() == 5);
    for (std::uint32_t place = 0; place < 5; ++place) {
      CHECK(w.failed(place).empty());
      CHECK(w.reports().at(place).read()->getNode() == ring_world::name(place));
    }
  }

  TEST_CASE("bytes that a link damages are noticed") {
    ring_world w({});
    w.damage = [](const messages::msg<ProbePart>& m) {
      if (m.read()->getContent().size() == 0)
        return m;
      return changed(m, [](ProbePart::Builder b) { b.getContent()[9] ^= 0x40; });
    };
    w.connect();
    w.run();
    REQUIRE_FALSE(w.reports().empty());
    const auto& first = w.reports().begin()->second;
    CHECK(std::string(first.read()->getFailed().cStr()).find("damages data") != std::string::npos);
  }

  TEST_CASE("a member that is elsewhere in the program is not believed") {
    for (const auto& how : std::vector<std::function<void(ProbePart::Builder)>>{
             [](ProbePart::Builder b) { b.setStep(b.getStep() + 1); },
             [](ProbePart::Builder b) { b.setOffset(b.getOffset() + 4); },
             [](ProbePart::Builder b) {
               const std::vector<std::uint8_t> more(2'048);
               b.setContent(kj::arrayPtr(more.data(), more.size()));
             }}) {
      ring_world w({});
      w.damage = [&how](const messages::msg<ProbePart>& m) {
        return m.read()->getContent().size() == 0 ? m : altered(m, m.envelope(), how, 512);
      };
      w.connect();
      w.run();
      REQUIRE_FALSE(w.reports().empty());
      const auto [place, report] = *w.reports().begin();
      CHECK(report.read()->getPeer() == ring_world::name(1 - place));
    }
  }

  TEST_CASE("more than the window is never on its way") {
    ring_options o;
    o.sizes = {limits::ring_bytes_max};
    o.repeats = 1;
    ring_world w(o);
    w.connect();
    // Laps go first; then both members give half of the message, which is more than the window.
    w.run();
    REQUIRE(w.reports().size() == 2);
    ring_world still(o);
    still.connect();
    std::uint64_t sent = 0;
    ring_core& one = still.at(0);
    for (std::uint32_t lap = 0; lap < limits::ring_laps; ++lap) {
      const auto e = one.part(still.now, local<ProbePart>("n1", [&](auto b) { b.setStep(lap); }));
      for (const auto& effect : e)
        if (const auto* m = std::get_if<ring_core::to_next>(&effect))
          sent += m->message.as<ProbePart>().read()->getContent().size();
    }
    CHECK(sent > limits::ring_window - limits::ring_part);
    CHECK(sent <= limits::ring_window);
  }

  TEST_CASE("the rate is kept while others train") {
    ring_options o;
    o.paced = true;
    instant paid_until{1s};
    o.pay = [&paid_until](instant now, std::uint64_t bytes) {
      if (bytes == 0 || paid_until <= now) {
        paid_until = now + std::chrono::microseconds(bytes);
        return now;
      }
      return paid_until;
    };
    ring_world w(o);
    w.connect();
    w.run();
    CHECK(w.reports().empty());
    for (int i = 0; i < 10'000 && w.reports().size() < 2; ++i) {
      w.now += 100us;
      w.tick_all();
      w.run();
    }
    REQUIRE(w.reports().size() == 2);
    CHECK(w.failed(0).empty());
    // Before the start nothing is disturbed.
    o.paced = false;
    o.pay = [](instant now, std::uint64_t) { return now + 1h; };
    ring_world fast(o);
    fast.connect();
    fast.run();
    REQUIRE(fast.reports().size() == 2);
    CHECK(fast.failed(0).empty());
  }

  TEST_CASE("a member that can not be reached is dialled until the time is over") {
    ring_world w({});
    (void)w.at(0).begin();
    w.perform(0, w.at(0).not_connected(w.now, "connection refused", false));
    CHECK(w.reports().empty());
    REQUIRE(w.at(0).next_wakeup() == w.now + limits::ring_redial);
    w.now += limits::ring_redial;
    REQUIRE(w.at(0).tick(w.now).size() == 1);
    w.perform(0, w.at(0).not_connected(w.now, "connection refused", false));
    w.now += 10s;
    w.perform(0, w.at(0).tick(w.now));
    CHECK(w.failed(0) == "after 10.1 s: n1 could not be reached: connection refused");
    CHECK(w.reports().at(0).read()->getPeer() == "n1");
  }

  TEST_CASE("a refusal that stays ends the probe at once") {
    ring_world w({});
    w.perform(0, w.at(0).not_connected(w.now, "another token", true));
    CHECK(w.failed(0) == "n1 can not be reached: another token");
  }

  TEST_CASE("a member that falls silent is named when the time is over") {
    ring_world w({});
    w.connect();
    w.now += 10s;
    w.tick_all();
    REQUIRE(w.reports().size() == 2);
    CHECK(w.failed(1) == "after 10.0 s: 0.0 of 0.0 MB had come from n0");
    ring_world unheard({});
    unheard.perform(0, unheard.at(0).connected(unheard.now));
    CHECK(unheard.at(0).next_wakeup() == unheard.now + limits::ring_connect_within);
    unheard.now += limits::ring_connect_within;
    unheard.perform(0, unheard.at(0).tick(unheard.now));
    CHECK(unheard.failed(0) == "after 5.0 s: n1 did not connect");
  }

  TEST_CASE("a link that is lost before the end fails the probe, and after it does not") {
    ring_world w({});
    w.connect();
    w.perform(0, w.at(0).previous_lost(w.now, "reset"));
    CHECK(w.failed(0) == "the link from n1 was lost: reset");
    w.perform(1, w.at(1).next_lost(w.now, "reset"));
    CHECK(w.failed(1) == "the link to n0 was lost: reset");
    ring_world whole({});
    whole.connect();
    whole.run();
    whole.perform(0, whole.at(0).previous_lost(whole.now, "closed"));
    CHECK(whole.failed(0).empty());
  }

  TEST_CASE("a member may end while the one before it still waits for its last block") {
    ring_options o;
    o.members = 3;
    ring_world w(o);
    w.connect();
    w.run_with_late_parts(1);
    REQUIRE(w.reports().size() == 1);
    REQUIRE(w.reports().count(2) == 1);
    CHECK(w.failed(2).empty());
    w.perform(1, w.at(1).next_lost(w.now, "closed"));
    CHECK(w.reports().count(1) == 0);
    w.run();
    REQUIRE(w.reports().size() == 3);
    CHECK(w.failed(0).empty());
    CHECK(w.failed(1).empty());
  }

  TEST_CASE("what is asked for is bounded") {
    const auto why = [](const std::function<void(GroupProbeWanted::Builder)>& change) {
      const auto m = ring_world::wanted({}, 0);
      return ring_core::validation_error(*altered(m, m.envelope(), change, 4'096).read());
    };
    CHECK(why([](auto) {}).empty());
    CHECK(why([](auto b) { b.setPlace(2); }) == "place 2 of 2 members");
    CHECK(why([](auto b) { b.initMembers(1); }) == "a ring of 1 members");
    CHECK(why([](auto b) { b.setCount(5); }) == "a ring of 5 members of which 2 are told");
    CHECK(why([](auto b) { b.getSizes().set(0, 6); }) == "messages of 6 bytes");
    CHECK(why([](auto b) { b.getSizes().set(0, limits::ring_bytes_max + 4); }) ==
          "messages of 67108868 bytes");
    CHECK(why([](auto b) { b.initSizes(33); }) == "33 sizes of messages");
    CHECK(why([](auto b) { b.setRepeats(0); }) == "0 repeats");
  }
}
