#include "actors/master/recovery/world_sizes.hpp"

#include <algorithm>

namespace troupe::actors {

bool world_sizes::fits(std::uint32_t nodes, std::uint64_t workers) const {
  return nodes >= nodes_min && nodes <= nodes_max && nodes % unit == 0 &&
         (!elastic || elastic->allows(workers));
}

std::uint32_t world_sizes::largest_of(const std::vector<std::uint32_t>& slots) const {
  auto nodes = static_cast<std::uint32_t>(std::min<std::size_t>(slots.size(), nodes_max));
  std::uint64_t workers = 0;
  for (std::uint32_t i = 0; i < nodes; ++i)
    workers += slots[i];
  for (; nodes >= nodes_min && nodes > 0; --nodes) {
    if (fits(nodes, workers))
      return nodes;
    workers -= slots[nodes - 1];
  }
  return 0;
}

std::uint32_t world_sizes::most(std::uint32_t slots) const {
  auto nodes = nodes_max;
  while (nodes >= nodes_min && !fits(nodes, std::uint64_t{nodes} * slots))
    --nodes;
  return nodes >= nodes_min ? nodes : 0;
}

std::uint32_t world_sizes::least(std::uint32_t slots) const {
  auto nodes = nodes_min;
  while (nodes <= nodes_max && !fits(nodes, std::uint64_t{nodes} * slots))
    ++nodes;
  return nodes <= nodes_max ? nodes : 0;
}

} // namespace troupe::actors
