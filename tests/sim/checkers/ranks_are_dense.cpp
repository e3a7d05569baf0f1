#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <set>
#include <string>

namespace troupe::sim::checkers {

namespace {

class ranks_are_dense_checker final : public observer {
 public:
  explicit ranks_are_dense_checker(world& w) : world_(w) {}

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::GenerationSealed>())
      return;
    auto sealed = m.as<messages::GenerationSealed>().read();
    auto w = sealed->getWorld();
    std::uint32_t next_rank = 0;
    std::uint32_t next_group_rank = 0;
    std::set<std::string> nodes;
    for (auto each : w.getMembers()) {
      const bool in_order =
          each.getGroupRank() == next_group_rank && each.getFirstRank() == next_rank;
      const bool sane = each.getSlots() > 0 && nodes.insert(each.getNode().cStr()).second;
      if (!in_order || !sane)
        world_.blame(
            "ranks_are_dense",
            fmt::format(
                "generation {}: node {} has group rank {} and ranks from {}; {} and {} were next",
                w.getGeneration(), each.getNode().cStr(), each.getGroupRank(), each.getFirstRank(),
                next_group_rank, next_rank));
      ++next_group_rank;
      next_rank += each.getSlots();
    }
    if (next_rank != w.getWorldSize())
      world_.blame("ranks_are_dense", fmt::format("generation {}: {} ranks in a world of {}",
                                                  w.getGeneration(), next_rank, w.getWorldSize()));
  }

 private:
  world& world_;
};

} // namespace

std::shared_ptr<observer> ranks_are_dense(world& w) {
  return std::make_shared<ranks_are_dense_checker>(w);
}

} // namespace troupe::sim::checkers
