#pragma once

#include "topology/rank_order.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe::topology {

struct kept_order {
  std::vector<std::size_t> order; ///< by rank: the place in the request's nodes
  std::size_t replaced = 0;
};

/// The order in which each node of `wanted.previous` that is still there has the rank that it had,
/// and newcomers have the free ones.
///
/// What a node keeps in memory of a checkpoint is that of its ranks: a survivor that got another
/// rank would have to move it, or to read it again from a disk. So a newcomer takes a free rank
/// beside nodes that are near to it, if there is one.
///
/// Nothing: there was no order before, the number of nodes is another, or another node has rank 0
/// than the place `first`. `numbers` are those of the tree for the request's nodes.
std::optional<kept_order> kept_ranks(const network_tree& tree, const rank_request& wanted,
                                     const std::vector<std::size_t>& numbers, std::size_t first);

} // namespace troupe::topology
