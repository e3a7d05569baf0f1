#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::sim::checkers {

namespace {

class pauses_are_forgiven_checker final : public observer {
 public:
  pauses_are_forgiven_checker(world& w, duration lease) : world_(w), lease_(lease) {}

  void froze(const std::string& host) override { begins(host); }
  void thawed(const std::string& host) override { ends(host); }
  void way_cut(const std::string& from, const std::string& to) override { begins(from, to); }
  void way_free(const std::string& from, const std::string& to) override { ends(from, to); }

  void ended(const std::string& host, ending_kind) override {
    ends(host);
    // Its links never hear of it again, whatever is started in its place.
    const auto now = world_.events.now();
    troubles_[{host, ""}].past.push_back({now, now + 3 * lease_});
  }

  void weather_changed(const std::string& host, bool bad) override {
    bad ? bad_weather_[host] = instant::max() : bad_weather_[host] = world_.events.now();
  }

  void link_ended(const std::string& host, const std::string& peer, std::uint64_t,
                  ports::link_end how) override {
    if (how != ports::link_end::silent)
      return;
    const auto now = world_.events.now();
    const auto since = now - 3 * lease_;
    for (const auto& [at, until] : bad_weather_)
      if ((at == host || at == peer) && until >= since)
        return;
    const auto trouble = lasted({host, ""}, since) + lasted({peer, ""}, since) +
                         lasted({peer, host}, since) + lasted({host, peer}, since);
    if (trouble <= lease_ / 2)
      world_.blame("pauses_are_forgiven",
                   fmt::format("{} took {} for dead, which was in trouble for {} only", host, peer,
                               in_words(trouble)));
  }

 private:
  /// A host, or the way from one to another.
  using thing = std::pair<std::string, std::string>;
  struct record {
    std::deque<std::pair<instant, instant>> past;
    std::optional<instant> since;
  };

  void begins(const std::string& one, const std::string& other = {}) {
    troubles_[{one, other}].since = world_.events.now();
  }
  void ends(const std::string& one, const std::string& other = {}) {
    auto& r = troubles_[{one, other}];
    if (r.since)
      r.past.push_back({*r.since, world_.events.now()});
    r.since.reset();
    while (r.past.size() > 100)
      r.past.pop_front();
  }
  duration lasted(const thing& which, instant since) const {
    const auto found = troubles_.find(which);
    if (found == troubles_.end())
      return {};
    const auto now = world_.events.now();
    duration all{};
    for (const auto& [from, to] : found->second.past)
      all += std::max(std::min(to, now) - std::max(from, since), duration::zero());
    if (found->second.since)
      all += now - std::max(*found->second.since, since);
    return all;
  }

  world& world_;
  const duration lease_;
  std::map<thing, record> troubles_;
  std::map<std::string, instant> bad_weather_; ///< until when
};

} // namespace

std::shared_ptr<observer> pauses_are_forgiven(world& w, duration lease) {
  return std::make_shared<pauses_are_forgiven_checker>(w, lease);
}

} // namespace troupe::sim::checkers
