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
      compare(m.as<messages::Prepare>().read()->getWorld());
  }

  void recorded(const messages::any_msg& m) override {
    if (m.is<messages::GenerationSealed>())
      compare(m.as<messages::GenerationSealed>().read()->getWorld());
    else if (m.is<messages::GenerationProposed>())
      take(m.as<messages::GenerationProposed>().read()->getGeneration());
  }

 private:
  /// Two worlds may have the same members, so it is not enough to compare these.
  void take(std::uint64_t which) {
    if (!proposed_.insert(which).second)
      world_.blame("one_world_per_generation",
                   fmt::format("generation {} was proposed twice", which));
  }

  void compare(messages::World::Reader w) {
    std::string text;
    for (auto m : w.getMembers())
      text += fmt::format("{} at {} with {}; ", m.getNode().cStr(), m.getFirstRank(), m.getSlots());
    const auto [known, is_new] = worlds_.emplace(w.getGeneration(), text);
    if (!is_new && known->second != text)
      world_.blame("one_world_per_generation", fmt::format("generation {} was {}and is now {}",
                                                           w.getGeneration(), known->second, text));
  }

  world& world_;
  std::set<std::uint64_t> proposed_; ///< by any master
  std::map<std::uint64_t, std::string> worlds_;
};

} // namespace

std::shared_ptr<observer> one_world_per_generation(world& w) {
  return std::make_shared<one_world_per_generation_checker>(w);
}

} // namespace troupe::sim::checkers
