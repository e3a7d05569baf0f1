#include "actors/master/network_check/check_run_core.hpp"
#include "probe/limits.hpp"
#include "runtime/base/random.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::messages;

// A thousand nodes of which some are broken, in virtual time: how long a job waits for its check.

namespace {

constexpr auto own_probe = 60ms, good_group = 120ms;

/// Nodes that answer as the product's own do: one that is cut off fails its groups when the time to
/// connect is over, one whose machine is off answers nothing at all.
class checked_nodes {
 public:
  checked_nodes(std::uint32_t nodes, std::set<std::string> cut_off, std::set<std::string> off)
      : core_(author("network_check"), {}, 1), cut_off_(std::move(cut_off)), off_(std::move(off)) {
    act(core_.wanted(now_, local<CheckWanted>("planner", [&](CheckWanted::Builder b) {
                       auto all = b.initNodes(nodes);
                       for (std::uint32_t n = 0; n < nodes; ++n) {
                         all[n].setNode(name(n));
                         all[n].setAddress(name(n));
                       }
                     })));
    while (!answer_)
      step();
  }

  static std::string name(std::uint32_t n) { return fmt::format("n{}", n); }

  duration took() const { return now_ - instant{}; }
  std::set<std::string> left() const {
    std::set<std::string> names;
    auto said = answer_->read();
    for (const auto f : said->getLeave())
      names.insert(f.getNodes()[0].cStr());
    return names;
  }
  std::uint32_t rounds() const { return rounds_; }

 private:
  void step() {
    const auto alarm = core_.next_wakeup();
    if (!agenda_.empty() && (!alarm || agenda_.begin()->first <= *alarm)) {
      const auto first = agenda_.begin();
      now_ = first->first;
      const auto happen = std::move(first->second);
      agenda_.erase(first);
      act(happen());
    } else {
      now_ = *alarm;
      act(core_.tick(now_));
    }
  }

  void act(const check_run_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* s = std::get_if<check_run_core::say>(&e))
        asked(*s);
      else if (const auto* a = std::get_if<check_run_core::answer>(&e))
        answer_ = a->message;
  }

  void asked(const check_run_core::say& s) {
    if (off_.count(s.to) != 0)
      return;
    if (s.message.is<NodeProbeWanted>()) {
      const auto m = local<NodeProbed>("prober", [&](NodeProbed::Builder b) {
        b.setNode(s.to);
        b.setCheck(s.message.as<NodeProbeWanted>().read()->getCheck());
        b.setSeconds(0.06);
      });
      agenda_.emplace(now_ + own_probe, [this, m] { return core_.node_probed(now_, m); });
      return;
    }
    auto wanted = s.message.as<GroupProbeWanted>().read();
    rounds_ = std::max(rounds_, wanted->getRound());
    bool fails = false;
    for (const auto m : wanted->getMembers())
      fails =
          fails || off_.count(m.getNode().cStr()) != 0 || cut_off_.count(m.getNode().cStr()) != 0;
    const auto m = local<GroupProbed>("prober", [&](GroupProbed::Builder b) {
      b.setNode(s.to);
      b.setCheck(wanted->getCheck());
      b.setRound(wanted->getRound());
      b.setGroup(wanted->getGroup());
      b.setSeconds(0.12);
      b.setFailed(fails ? "not connected" : "");
    });
    agenda_.emplace(now_ + (fails ? duration(limits::ring_connect_within) : duration(good_group)),
                    [this, m] { return core_.group_probed(now_, m); });
  }

  instant now_{};
  check_run_core core_;
  const std::set<std::string> cut_off_, off_;
  std::multimap<instant, std::function<check_run_core::effects()>> agenda_;
  std::optional<messages::msg<NodesChecked>> answer_;
  std::uint32_t rounds_ = 0;
};

std::set<std::string> some_of(std::uint32_t nodes, std::uint32_t count, random_source& chance) {
  std::set<std::string> names;
  while (names.size() < count)
    names.insert(checked_nodes::name(static_cast<std::uint32_t>(chance.below(nodes))));
  return names;
}

} // namespace

TEST_CASE("a thousand nodes of which one in a hundred is broken") {
  constexpr std::uint32_t nodes = 1'024, bad = 10;
  // What the peer's constants come to: two rounds, in which a group that cannot connect fails after
  // the time of its process group, and the pause between them.
  constexpr auto peer = 2 * 180s + 5s;
  for (const bool off : {false, true}) {
    std::vector<double> seconds;
    std::set<std::uint32_t> rounds;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      random_source chance(seed);
      const auto broken = some_of(nodes, bad, chance);
      const checked_nodes done(nodes, off ? std::set<std::string>{} : broken,
                               off ? broken : std::set<std::string>{});
      CAPTURE(seed);
      CHECK(done.left() == broken);
      CHECK(done.took() < 60s);
      seconds.push_back(std::chrono::duration<double>(done.took()).count());
      rounds.insert(done.rounds());
    }
    std::sort(seconds.begin(), seconds.end());
    MESSAGE(fmt::format("{} of {} nodes {}: {:.1f} s (median of 20; {:.1f} to {:.1f}) in {} to {} "
                        "rounds; the peer's constants: {} s",
                        bad, nodes, off ? "off" : "cut off", seconds[10], seconds.front(),
                        seconds.back(), *rounds.begin(), *rounds.rbegin(),
                        std::chrono::seconds(peer).count()));
  }
}

TEST_CASE("ten thousand good nodes") {
  const checked_nodes done(10'000, {}, {});
  CHECK(done.left().empty());
  CHECK(done.took() < 1s);
}
