#include "actors/master/network_check/network_check_core_links.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace troupe::actors::network_check {
namespace {

constexpr std::size_t exact_links_max = 20;

using neighbours_of = std::map<node_index, std::set<node_index>>;

struct cover {
  std::vector<node_index> nodes;
  std::size_t not_slow = 0;

  bool better_than(const cover& o) const {
    return std::tuple(nodes.size(), not_slow) < std::tuple(o.nodes.size(), o.not_slow);
  }
  void take(node_index n, const std::vector<bool>& slow) {
    nodes.push_back(n);
    not_slow += !slow[n];
  }
};

void remove(neighbours_of& graph, node_index n) {
  for (const auto other : graph[n]) {
    graph[other].erase(n);
    if (graph[other].empty())
      graph.erase(other);
  }
  graph.erase(n);
}

/// The end with the most links; of equal ones a slow one, then the later.
node_index heaviest(const neighbours_of& graph, const std::vector<bool>& slow) {
  const auto rank = [&](const auto& entry) {
    return std::tuple(entry.second.size(), static_cast<bool>(slow[entry.first]), entry.first);
  };
  return std::max_element(graph.begin(), graph.end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
      ->first;
}

/// Either the heaviest end leaves, or all at the other ends of its links. Of equally good covers
/// the first that is found is kept. Depth: the nodes; work: 1.5^links at most.
void search(const neighbours_of& graph, cover so_far, const std::vector<bool>& slow, cover& best) {
  if (!so_far.better_than(best))
    return;
  if (graph.empty()) {
    best = std::move(so_far);
    return;
  }
  const auto n = heaviest(graph, slow);
  auto without = graph;
  remove(without, n);
  auto with = so_far;
  with.take(n, slow);
  search(without, std::move(with), slow, best);
  const auto others = graph.at(n);
  without = graph;
  for (const auto other : others) {
    if (without.count(other))
      remove(without, other);
    so_far.take(other, slow);
  }
  search(without, std::move(so_far), slow, best);
}

cover exact(const neighbours_of& graph, const std::vector<bool>& slow) {
  cover best;
  for (const auto& entry : graph)
    best.take(entry.first, slow);
  search(graph, {}, slow, best);
  return best;
}

cover greedy(const neighbours_of& graph, const std::vector<bool>& slow) {
  cover out;
  auto left = graph;
  std::set<std::tuple<std::size_t, bool, node_index>> by_weight;
  const auto rank = [&](node_index n) {
    return std::tuple(left.at(n).size(), static_cast<bool>(slow[n]), n);
  };
  for (const auto& entry : left)
    by_weight.insert(rank(entry.first));
  while (!by_weight.empty()) {
    const auto n = std::get<2>(*by_weight.rbegin());
    const auto others = left.at(n);
    by_weight.erase(rank(n));
    for (const auto other : others)
      by_weight.erase(rank(other));
    remove(left, n);
    for (const auto other : others)
      if (left.count(other))
        by_weight.insert(rank(other));
    out.take(n, slow);
  }
  return out;
}

/// Takes the part that hangs together with its first node out of `graph`.
neighbours_of split_off(neighbours_of& graph) {
  neighbours_of part;
  std::vector<node_index> open{graph.begin()->first};
  while (!open.empty()) {
    const auto at = graph.find(open.back());
    open.pop_back();
    if (at == graph.end())
      continue;
    open.insert(open.end(), at->second.begin(), at->second.end());
    part.insert(graph.extract(at));
  }
  return part;
}

} // namespace

std::vector<node_index> fewest_ends(const std::vector<link>& links, const std::vector<bool>& slow) {
  neighbours_of graph;
  for (const auto& [a, b] : links) {
    graph[a].insert(b);
    graph[b].insert(a);
  }
  std::vector<node_index> out;
  while (!graph.empty()) {
    const auto part = split_off(graph);
    std::size_t ends = 0;
    for (const auto& entry : part)
      ends += entry.second.size();
    const auto chosen = ends / 2 <= exact_links_max ? exact(part, slow) : greedy(part, slow);
    out.insert(out.end(), chosen.nodes.begin(), chosen.nodes.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace troupe::actors::network_check
