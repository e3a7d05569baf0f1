#pragma once

#include "runtime/base/result.hpp"
#include "topology/network_tree.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// Which node gets which rank.
namespace troupe::topology {

/// What is to be arranged.
struct rank_request {
  /// The job's nodes in the order that they have without this: by their numbers.
  std::vector<std::string> nodes;
  /// The node that must have rank 0. Empty: the first of `nodes`.
  std::string first;
  /// Ranks k·n … k·n + k − 1 are a group that talks within itself most: a group of a dragonfly, a
  /// `node_unit`. 1: there are none.
  std::size_t group_size = 1;
  /// The nodes by their ranks as they were before one was replaced. Empty: there is no such order.
  std::vector<std::string> previous;
  /// Survivors keep their ranks while no level is crossed more often than this beyond the optimum,
  /// for each node that was replaced (and once if none was).
  std::size_t worse_by = 1;
};

/// How often an order leaves the groups of a level.
struct crossings {
  /// Neighbours in the ring of all ranks that do not share the switch of this level; the last rank
  /// and rank 0 are neighbours, too.
  std::size_t ring = 0;
  /// The same for ranks in a line, as the stages of a pipeline are.
  std::size_t line = 0;
  /// Hierarchical: groups of `group_size` ranks that do not hang from one switch of this level.
  std::size_t split_groups = 0;

  bool operator==(const crossings& other) const {
    return ring == other.ring && line == other.line && split_groups == other.split_groups;
  }
};

/// What became of one level. `optimum` is the lower bound of each of its numbers by itself: no
/// order has fewer.
struct level_cost {
  crossings before, after, optimum;
};

struct rank_order {
  /// By rank: the place in `rank_request::nodes`.
  std::vector<std::size_t> order;
  /// The level below the top first.
  std::vector<level_cost> levels;
  /// Every survivor has the rank that it had.
  bool kept = false;
  /// Newcomers that took the ranks of nodes that left, if `kept`.
  std::size_t replaced = 0;
};

/// Numbers the nodes so that neighbours in rank are neighbours in the network.
///
/// Depth first over the tree: all nodes of a switch follow one another, at every level. With g
/// groups that have nodes of the job, any ring leaves a group at least g times (never, if g = 1)
/// and any line g − 1 times; this order does so exactly that often, at every level at once. It
/// begins with the node that must have rank 0: the switches above that node come first.
///
/// With groups of k ranks: no order puts more than ⌊s/k⌋ whole groups below a switch with s nodes,
/// and this one puts that many below every switch. If such an order can not be had from the one
/// above, whole groups come first and the ring may be crossed more often than the optimum says.
///
/// Equal requests have equal results. Refuses a request whose nodes are not in the tree or are
/// named twice, and groups that do not divide the nodes: what is left for the caller is the order
/// that it had.
result<rank_order> arrange(const network_tree& tree, const rank_request& wanted);

/// What any order of nodes costs: numbers of the tree by rank, one entry for each level.
/// Precondition: `group_size` ≥ 1 divides the number of nodes.
std::vector<crossings> cost_of(const network_tree& tree, const std::vector<std::size_t>& by_rank,
                               std::size_t group_size);

/// The lower bounds for these nodes.
std::vector<crossings> optimum_of(const network_tree& tree, const std::vector<std::size_t>& nodes,
                                  std::size_t group_size);

} // namespace troupe::topology
