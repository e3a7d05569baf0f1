#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

namespace troupe::sim::checkers {

namespace {

class one_world_per_generation_checker final : public observer {
 public:
  explicit one_world_per_generation_checker(world& w) : world_(w) {}

  void sent(const std::string&, const std::string&, const messages::any_msg& m) override {
    if (m.is<messages::Prepare>())
      compare(m.envelope().about, m.as<messages::Prepare>().read()->getSeat().getMember());
  }

  void recorded(const messages::any_msg& m) override {
    if (m.is<messages::GenerationProposed>())
      take(generation{m.as<messages::GenerationProposed>().read()->getGeneration()});
    if (!m.is<messages::GenerationSealed>())
      return;
    auto sealed = m.as<messages::GenerationSealed>().read();
    const generation which{sealed->getWorld().getGeneration()};
    for (auto each : sealed->getWorld().getMembers())
      compare(which, each);
    const auto members = sealed->getWorld().getMembers().size();
    if (const auto& seats = worlds_[which]; seats.size() != members)
      world_.blame("one_world_per_generation",
                   fmt::format("generation {} was prepared with {} nodes and sealed with {}",
                               which.value, seats.size(), members));
  }

 private:
  /// Two worlds may have the same members, so it is not enough to compare these.
  void take(generation which) {
    if (!proposed_.insert(which).second)
      world_.blame("one_world_per_generation",
                   fmt::format("generation {} was proposed twice", which.value));
  }

  void compare(generation which, messages::Member::Reader m) {
    const auto text = fmt::format("at {} with {}", m.getFirstRank(), m.getSlots());
    const auto [known, is_new] = worlds_[which].emplace(m.getNode().cStr(), text);
    if (!is_new && known->second != text)
      world_.blame("one_world_per_generation",
                   fmt::format("in generation {} {} was {} and is now {}", which.value,
                               m.getNode().cStr(), known->second, text));
  }

  world& world_;
  std::set<generation> proposed_; ///< by any master
  /// Of each number: which node has which ranks.
  std::map<generation, std::map<std::string, std::string>> worlds_;
};

} // namespace

std::shared_ptr<observer> one_world_per_generation(world& w) {
  return std::make_shared<one_world_per_generation_checker>(w);
}

} // namespace troupe::sim::checkers
