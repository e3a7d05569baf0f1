#include "topology/rank_order.hpp"

#include <algorithm>

namespace troupe::topology {

namespace {

crossings cost_at(const network_tree& tree, std::size_t level,
                  const std::vector<std::size_t>& by_rank, std::size_t group_size) {
  crossings sum;
  const auto differ = [&tree, level](std::size_t a, std::size_t b) {
    return tree.group(level, a) != tree.group(level, b);
  };
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank)
    sum.line += differ(by_rank[rank - 1], by_rank[rank]) ? 1 : 0;
  sum.ring = sum.line + (!by_rank.empty() && differ(by_rank.back(), by_rank.front()) ? 1 : 0);
  for (std::size_t begin = 0; begin + group_size <= by_rank.size(); begin += group_size)
    for (std::size_t rank = begin + 1; rank < begin + group_size; ++rank)
      if (differ(by_rank[begin], by_rank[rank])) {
        ++sum.split_groups;
        break;
      }
  return sum;
}

crossings optimum_at(const network_tree& tree, std::size_t level,
                     const std::vector<std::size_t>& nodes, std::size_t group_size) {
  std::vector<std::uint32_t> groups;
  groups.reserve(nodes.size());
  for (const auto node : nodes)
    groups.push_back(tree.group(level, node));
  std::sort(groups.begin(), groups.end());
  std::size_t occupied = 0, whole = 0;
  for (std::size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    while (end < groups.size() && groups[end] == groups[begin])
      ++end;
    ++occupied;
    whole += (end - begin) / group_size;
  }
  crossings least;
  least.ring = occupied >= 2 ? occupied : 0;
  least.line = occupied >= 1 ? occupied - 1 : 0;
  least.split_groups = nodes.size() / group_size - whole;
  return least;
}

} // namespace

std::vector<crossings> cost_of(const network_tree& tree, const std::vector<std::size_t>& by_rank,
                               std::size_t group_size) {
  std::vector<crossings> costs;
  for (std::size_t level = 1; level <= tree.levels(); ++level)
    costs.push_back(cost_at(tree, level, by_rank, group_size));
  return costs;
}

std::vector<crossings> optimum_of(const network_tree& tree, const std::vector<std::size_t>& nodes,
                                  std::size_t group_size) {
  std::vector<crossings> least;
  for (std::size_t level = 1; level <= tree.levels(); ++level)
    least.push_back(optimum_at(tree, level, nodes, group_size));
  return least;
}

} // namespace troupe::topology
