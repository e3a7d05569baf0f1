#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <vector>

namespace troupe::sim::checkers {

namespace {

class worlds_fit_the_sizes_checker final : public observer {
 public:
  worlds_fit_the_sizes_checker(world& w, const actors::world_sizes& sizes)
      : world_(w), allowed_{sizes} {}

  void recorded(const messages::any_msg& m) override {
    if (m.is<messages::SizesChanged>())
      change(*m.as<messages::SizesChanged>().read());
    else if (m.is<messages::GenerationProposed>())
      allowed_.erase(allowed_.begin(), allowed_.end() - 1);
    else if (m.is<messages::GenerationSealed>())
      judge(*m.as<messages::GenerationSealed>().read());
  }

 private:
  void change(messages::SizesChanged::Reader to) {
    auto sizes = allowed_.back();
    sizes.nodes_min = to.getNodesMin();
    sizes.nodes_max = to.getNodesMax();
    allowed_.push_back(sizes);
  }

  void judge(messages::GenerationSealed::Reader sealed) {
    const auto nodes = sealed.getWorld().getMembers().size();
    const auto workers = sealed.getWorld().getWorldSize();
    for (const auto& sizes : allowed_)
      if (nodes >= sizes.nodes_min && nodes <= sizes.nodes_max && nodes % sizes.unit == 0 &&
          (!sizes.elastic || sizes.elastic->allows(workers)))
        return;
    const auto& sizes = allowed_.back();
    world_.blame("worlds_fit_the_sizes",
                 fmt::format("a world of {} nodes; {} to {} in units of {} are allowed", nodes,
                             sizes.nodes_min, sizes.nodes_max, sizes.unit));
  }

  world& world_;
  /// Since the newest proposal: a world is formed by what was so then.
  std::vector<actors::world_sizes> allowed_;
};

} // namespace

std::shared_ptr<observer> worlds_fit_the_sizes(world& w, const actors::world_sizes& sizes) {
  return std::make_shared<worlds_fit_the_sizes_checker>(w, sizes);
}

} // namespace troupe::sim::checkers
