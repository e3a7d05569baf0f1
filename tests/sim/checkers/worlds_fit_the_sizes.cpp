#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

namespace troupe::sim::checkers {

namespace {

class worlds_fit_the_sizes_checker final : public observer {
 public:
  worlds_fit_the_sizes_checker(world& w, const actors::world_sizes& sizes)
      : world_(w), sizes_(sizes) {}

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::GenerationSealed>())
      return;
    auto sealed = m.as<messages::GenerationSealed>().read();
    const auto nodes = sealed->getWorld().getMembers().size();
    if (nodes < sizes_.nodes_min || nodes > sizes_.nodes_max || nodes % sizes_.unit != 0 ||
        (sizes_.elastic && !sizes_.elastic->allows(sealed->getWorld().getWorldSize())))
      world_.blame("worlds_fit_the_sizes",
                   fmt::format("a world of {} nodes; {} to {} in units of {} are allowed", nodes,
                               sizes_.nodes_min, sizes_.nodes_max, sizes_.unit));
  }

 private:
  world& world_;
  actors::world_sizes sizes_;
};

} // namespace

std::shared_ptr<observer> worlds_fit_the_sizes(world& w, const actors::world_sizes& sizes) {
  return std::make_shared<worlds_fit_the_sizes_checker>(w, sizes);
}

} // namespace troupe::sim::checkers
