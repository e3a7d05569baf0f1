#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

namespace troupe::sim::checkers {

namespace {

/// Simulated jobs have 5 s to stop their workers.
constexpr auto patience = 15s;

class standbys_are_idle_checker final : public observer {
 public:
  standbys_are_idle_checker(world& w, const trainers& t) : world_(w), trainers_(t) {}

  void delivered(const std::string& at, const std::string&, const messages::any_msg& m) override {
    if (m.is<messages::StandBy>())
      idle_by_.emplace(at, world_.events.now() + patience);
    else if (m.is<messages::Prepare>())
      idle_by_.erase(at);
  }
  // What a new supervisor adopts, or one that was stopped still has to do, takes its own time.
  void ended(const std::string& host, ending_kind) override { idle_by_.erase(host); }
  void froze(const std::string& host) override { idle_by_.erase(host); }

  void time_passed(instant now) override {
    for (auto at = idle_by_.begin(); at != idle_by_.end();) {
      if (now < at->second) {
        ++at;
        continue;
      }
      for (const auto& p : trainers_.all())
        if (p.node == at->first && !p.ended && !p.killed && !p.beyond_reach)
          world_.blame("standbys_are_idle",
                       fmt::format("{} stands by and still runs pid {} of generation {}", p.node,
                                   p.pid, p.which.value));
      at = idle_by_.erase(at);
    }
  }

 private:
  world& world_;
  const trainers& trainers_;
  std::map<std::string, instant> idle_by_;
};

} // namespace

std::shared_ptr<observer> standbys_are_idle(world& w, const trainers& t) {
  return std::make_shared<standbys_are_idle_checker>(w, t);
}

} // namespace troupe::sim::checkers
