#pragma once

#include "actors/master/recovery/elasticity.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::actors {

/// Which numbers of nodes make a world: MIN to MAX (--nnodes), whole units (--node_unit), and with
/// an elasticity config only those whose workers it allows.
struct world_sizes {
  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;
  std::uint32_t unit = 1;
  std::optional<elasticity> elastic;

  /// Of nodes with these slots, in the order of their claims: with how many of the first the
  /// largest world can be made. 0 if there is none.
  std::uint32_t largest_of(const std::vector<std::uint32_t>& slots) const;

  /// The largest and the smallest world there can be if every node has that many slots. 0 if none.
  std::uint32_t most(std::uint32_t slots) const;
  std::uint32_t least(std::uint32_t slots) const;

 private:
  bool fits(std::uint32_t nodes, std::uint64_t workers) const;
};

} // namespace troupe::actors
