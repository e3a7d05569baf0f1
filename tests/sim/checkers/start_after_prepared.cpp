#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::sim::checkers {

namespace {

class start_after_prepared_checker final : public observer {
 public:
  explicit start_after_prepared_checker(world& w) : world_(w) {}

  void sent(const std::string& from, const std::string& to, const messages::any_msg& m) override {
    if (m.is<messages::Prepared>())
      prepared_.insert({m.envelope().about, from});
    else if (m.is<messages::Start>())
      may_start(m.envelope().about, "Start was sent to " + to);
  }

  /// A node whose link is new says it in its Hello.
  void dialled(const std::string& from, const messages::msg<messages::Hello>& hello) override {
    auto said = hello.read();
    if (said->getState().getPhase() == messages::NodeState::Phase::PREPARED)
      prepared_.insert({generation{said->getState().getGeneration()}, from});
  }

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::GenerationSealed>())
      return;
    auto sealed = m.as<messages::GenerationSealed>().read();
    auto& members = sealed_[generation{sealed->getWorld().getGeneration()}];
    for (auto each : sealed->getWorld().getMembers())
      members.insert(each.getNode().cStr());
  }

  void process_started(const process_record& p) override {
    may_start(p.which, fmt::format("rank {} was started on {}", p.rank, p.node));
  }

 private:
  void may_start(generation which, const std::string& what) {
    const auto members = sealed_.find(which);
    if (members == sealed_.end())
      return world_.blame(
          "start_after_prepared",
          fmt::format("{} although generation {} is not journalled as sealed", what, which.value));
    for (const auto& node : members->second)
      if (!prepared_.count({which, node}))
        world_.blame("start_after_prepared",
                     fmt::format("{} although {} has not said Prepared for generation {}", what,
                                 node, which.value));
  }

  world& world_;
  std::set<std::pair<generation, std::string>> prepared_;
  std::map<generation, std::set<std::string>> sealed_;
};

} // namespace

std::shared_ptr<observer> start_after_prepared(world& w) {
  return std::make_shared<start_after_prepared_checker>(w);
}

} // namespace troupe::sim::checkers
