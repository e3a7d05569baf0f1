#include "topology/rank_order.hpp"

#include "runtime/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::topology;

namespace {

network_tree tree_of(std::vector<place> places) {
  auto made = network_tree::of(std::move(places));
  REQUIRE(made.has_value());
  return std::move(*made);
}

std::string name_of(std::size_t node) {
  return "n" + std::to_string(node);
}

/// Nodes at random places; `depth` may be less for some.
network_tree random_tree(random_source& chance, std::size_t nodes, std::size_t depth,
                         std::size_t width) {
  std::vector<place> places;
  for (std::size_t node = 0; node < nodes; ++node) {
    place one{name_of(node), {}};
    const auto levels = chance.chance(0.1) ? chance.below(depth + 1) : depth;
    for (std::size_t level = 0; level < levels; ++level)
      one.switches.push_back("s" + std::to_string(chance.below(width)));
    places.push_back(std::move(one));
  }
  return tree_of(std::move(places));
}

std::vector<std::string> names(const network_tree& tree) {
  std::vector<std::string> all;
  for (std::size_t node = 0; node < tree.size(); ++node)
    all.push_back(tree.at(node).node);
  return all;
}

rank_order arranged(const network_tree& tree, const rank_request& wanted) {
  auto made = arrange(tree, wanted);
  REQUIRE(made.has_value());
  REQUIRE(made->order.size() == wanted.nodes.size());
  REQUIRE(std::set<std::size_t>(made->order.begin(), made->order.end()).size() ==
          wanted.nodes.size());
  REQUIRE(made->levels.size() == tree.levels());
  return std::move(*made);
}

std::vector<std::string> by_rank(const rank_request& wanted, const rank_order& made) {
  std::vector<std::string> ranked;
  for (const auto place : made.order)
    ranked.push_back(wanted.nodes[place]);
  return ranked;
}

/// The ten nodes of the guide's example: "asw psw ip".
network_tree guide() {
  std::vector<place> places;
  for (std::size_t node = 0; node < 10; ++node)
    places.push_back(
        {"192.168.0." + std::to_string(node), {"psw-0", "asw-" + std::to_string(node % 4)}});
  return tree_of(std::move(places));
}

/// Counted by the definition, with nothing of the library: names of switches only.
std::size_t ring_of(const network_tree& tree, const std::vector<std::size_t>& ranked,
                    std::size_t level) {
  std::size_t sum = 0;
  for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
    const auto& a = tree.at(ranked[rank]);
    const auto& b = tree.at(ranked[(rank + 1) % ranked.size()]);
    std::size_t common = 0;
    while (common < std::min(a.switches.size(), b.switches.size()) &&
           a.switches[common] == b.switches[common])
      ++common;
    sum += a.node != b.node && common < level ? 1 : 0;
  }
  return sum;
}

/// The fewest of each number over all orders that begin with this node, each by itself.
std::vector<crossings> fewest(const network_tree& tree, std::size_t first, std::size_t group_size) {
  std::vector<std::size_t> order(tree.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[0], order[first]);
  std::sort(order.begin() + 1, order.end());
  auto least = cost_of(tree, order, group_size);
  while (std::next_permutation(order.begin() + 1, order.end())) {
    const auto cost = cost_of(tree, order, group_size);
    for (std::size_t level = 0; level < least.size(); ++level) {
      least[level].ring = std::min(least[level].ring, cost[level].ring);
      least[level].line = std::min(least[level].line, cost[level].line);
      least[level].split_groups = std::min(least[level].split_groups, cost[level].split_groups);
    }
  }
  return least;
}

} // namespace

TEST_CASE("the guide's ten nodes: from ten crossings to four") {
  const auto tree = guide();
  const rank_request wanted{names(tree), {}, 1, {}, 1};
  const auto made = arranged(tree, wanted);
  CHECK(made.order == std::vector<std::size_t>{0, 4, 8, 1, 5, 9, 2, 6, 3, 7});
  CHECK(made.levels[0].after == crossings{0, 0, 0});
  CHECK(made.levels[1].before == crossings{10, 9, 0});
  CHECK(made.levels[1].after == crossings{4, 3, 0});
  CHECK(made.levels[1].optimum == crossings{4, 3, 0});
  CHECK_FALSE(made.kept);
}

TEST_CASE("the node that must have rank 0 has it, and nothing is lost by that") {
  const auto tree = guide();
  for (const auto& first : names(tree)) {
    const rank_request wanted{names(tree), first, 1, {}, 1};
    const auto made = arranged(tree, wanted);
    CHECK(by_rank(wanted, made)[0] == first);
    CHECK(made.levels[1].after == made.levels[1].optimum);
  }
}

TEST_CASE("random trees: the lower bound at every level at once") {
  random_source chance(1);
  for (int round = 0; round < 60; ++round) {
    const auto nodes = 1 + chance.below(200);
    const auto tree = random_tree(chance, nodes, chance.below(6), 1 + chance.below(5));
    // Some of the cluster's nodes, in any order.
    rank_request wanted;
    for (std::size_t node = 0; node < tree.size(); ++node)
      if (chance.chance(0.8) || node == 0)
        wanted.nodes.insert(wanted.nodes.begin() +
                                static_cast<std::ptrdiff_t>(chance.below(wanted.nodes.size() + 1)),
                            tree.at(node).node);
    wanted.first = wanted.nodes[chance.below(wanted.nodes.size())];
    const auto made = arranged(tree, wanted);
    REQUIRE(by_rank(wanted, made)[0] == wanted.first);
    std::vector<std::size_t> ranked;
    for (const auto& name : by_rank(wanted, made))
      ranked.push_back(*tree.find(name));
    for (std::size_t level = 1; level <= tree.levels(); ++level) {
      REQUIRE(made.levels[level - 1].after == made.levels[level - 1].optimum);
      REQUIRE(ring_of(tree, ranked, level) == made.levels[level - 1].optimum.ring);
    }
  }
}

TEST_CASE("small trees: no order of all is better at any level") {
  random_source chance(2);
  for (std::size_t nodes = 1; nodes <= 8; ++nodes)
    for (int round = 0; round < 6; ++round) {
      const auto tree = random_tree(chance, nodes, 1 + chance.below(3), 2 + chance.below(2));
      const auto first = chance.below(nodes);
      const auto least = fewest(tree, first, 1);
      const auto made = arranged(tree, {names(tree), name_of(first), 1, {}, 1});
      for (std::size_t level = 0; level < tree.levels(); ++level) {
        REQUIRE(made.levels[level].after == least[level]);
        REQUIRE(made.levels[level].optimum == least[level]);
      }
    }
}

TEST_CASE("small trees with groups: no order of all splits fewer of them at any level") {
  random_source chance(3);
  for (const std::size_t nodes : {2, 4, 6, 8})
    for (const std::size_t group_size : {2, 3, 4})
      for (int round = 0; round < 4 && nodes % group_size == 0; ++round) {
        const auto tree = random_tree(chance, nodes, 1 + chance.below(3), 2 + chance.below(2));
        const auto first = chance.below(nodes);
        const auto least = fewest(tree, first, group_size);
        const auto made = arranged(tree, {names(tree), name_of(first), group_size, {}, 1});
        REQUIRE(made.order[0] == first);
        for (std::size_t level = 0; level < tree.levels(); ++level)
          REQUIRE(made.levels[level].after.split_groups == least[level].split_groups);
      }
}

TEST_CASE("larger trees with groups: as many whole ones below each switch as there can be") {
  random_source chance(4);
  for (int round = 0; round < 60; ++round) {
    const auto group_size = 1 + chance.below(9);
    const auto tree = random_tree(chance, group_size * (1 + chance.below(40)), 1 + chance.below(4),
                                  1 + chance.below(6));
    const auto first = name_of(chance.below(tree.size()));
    const rank_request wanted{names(tree), first, group_size, {}, 1};
    const auto made = arranged(tree, wanted);
    REQUIRE(by_rank(wanted, made)[0] == first);
    for (const auto& level : made.levels)
      REQUIRE(level.after.split_groups == level.optimum.split_groups);
  }
}

TEST_CASE("a dragonfly: whole groups first, and the ring as good as that allows") {
  const auto tree = tree_of({{"a0", {"a"}},
                             {"a1", {"a"}},
                             {"a2", {"a"}},
                             {"b0", {"b"}},
                             {"c0", {"c"}},
                             {"c1", {"c"}},
                             {"c2", {"c"}},
                             {"c3", {"c"}}});
  SUBCASE("groups that fit as the tree is") {
    const rank_request wanted{{"c0", "c1", "a0", "a1", "b0", "a2", "c2", "c3"}, {}, 4, {}, 1};
    const auto made = arranged(tree, wanted);
    CHECK(by_rank(wanted, made) ==
          std::vector<std::string>{"c0", "c1", "c2", "c3", "a0", "a1", "a2", "b0"});
    CHECK(made.levels[0].before.split_groups == 2);
    CHECK(made.levels[0].after == crossings{3, 2, 1});
  }
  SUBCASE("a group that is split stands beside what it has its nodes of") {
    const rank_request wanted{names(tree), {}, 2, {}, 1};
    const auto made = arranged(tree, wanted);
    CHECK(by_rank(wanted, made) ==
          std::vector<std::string>{"a0", "a1", "a2", "b0", "c0", "c1", "c2", "c3"});
    CHECK(made.levels[0].after == crossings{3, 2, 1});
  }
  SUBCASE("the node of rank 0 is in a group that is split") {
    const rank_request wanted{names(tree), "b0", 2, {}, 1};
    const auto made = arranged(tree, wanted);
    CHECK(by_rank(wanted, made)[0] == "b0");
    CHECK(made.levels[0].after == crossings{3, 2, 1});
  }
}

TEST_CASE("depth first would split a group more, so whole groups come first") {
  // a0 b0 | b1 c0: both are split, and one must be.
  const auto tree = tree_of({{"a0", {"a"}}, {"b0", {"b"}}, {"b1", {"b"}}, {"c0", {"c"}}});
  const rank_request wanted{names(tree), {}, 2, {}, 1};
  const auto made = arranged(tree, wanted);
  CHECK(made.levels[0].after.split_groups == 1);
  CHECK(by_rank(wanted, made) == std::vector<std::string>{"a0", "c0", "b0", "b1"});
}

TEST_CASE("survivors keep their ranks when a node is replaced by its neighbour") {
  const auto tree = tree_of(
      {{"a0", {"a"}}, {"a1", {"a"}}, {"a2", {"a"}}, {"b0", {"b"}}, {"b1", {"b"}}, {"b2", {"b"}}});
  rank_request wanted{{"a0", "b2", "b0", "a2"}, {}, 1, {"a0", "a1", "b0", "b1"}, 1};
  const auto made = arranged(tree, wanted);
  CHECK(made.kept);
  CHECK(made.replaced == 2);
  // Each newcomer beside the nodes of its switch.
  CHECK(by_rank(wanted, made) == std::vector<std::string>{"a0", "a2", "b0", "b2"});
  CHECK(made.levels[0].after == made.levels[0].optimum);
}

TEST_CASE("ranks are kept as far as the bound allows, and given anew beyond it") {
  // x hangs from b, and takes the place of a1 between nodes of a.
  const auto tree = tree_of(
      {{"a0", {"a"}}, {"a1", {"a"}}, {"a2", {"a"}}, {"b0", {"b"}}, {"b1", {"b"}}, {"x", {"b"}}});
  rank_request wanted{{"a0", "x", "a2", "b0", "b1"}, {}, 1, {"a0", "a1", "a2", "b0", "b1"}, 2};
  const auto kept = arranged(tree, wanted);
  CHECK(kept.kept);
  CHECK(by_rank(wanted, kept) == wanted.nodes);
  CHECK(kept.levels[0].after.ring == 4);
  CHECK(kept.levels[0].optimum.ring == 2);

  wanted.worse_by = 1;
  const auto anew = arranged(tree, wanted);
  CHECK_FALSE(anew.kept);
  CHECK(anew.replaced == 0);
  CHECK(by_rank(wanted, anew) == std::vector<std::string>{"a0", "a2", "x", "b0", "b1"});
  CHECK(anew.levels[0].after.ring == 2);

  wanted.worse_by = static_cast<std::size_t>(-1);
  CHECK(arranged(tree, wanted).kept);
}

TEST_CASE("what keeps ranks from being kept") {
  const auto tree = guide();
  const auto all = names(tree);
  rank_request wanted{all, {}, 1, all, 100};
  CHECK(arranged(tree, wanted).kept);
  wanted.first = all[3];
  CHECK_FALSE(arranged(tree, wanted).kept);
  wanted = {{all[0], all[1], all[2]}, {}, 1, {all[0], all[1]}, 100};
  CHECK_FALSE(arranged(tree, wanted).kept);
  // Rank 0 left, and its newcomer is to have that rank; or a survivor is.
  wanted = {{all[2], all[1]}, all[2], 1, {all[0], all[1]}, 100};
  CHECK(arranged(tree, wanted).order == std::vector<std::size_t>{0, 1});
  CHECK(arranged(tree, wanted).kept);
  wanted.first = all[1];
  CHECK_FALSE(arranged(tree, wanted).kept);
  CHECK(arranged(tree, wanted).order == std::vector<std::size_t>{1, 0});
  wanted = {{all[2], all[1]}, {}, 1, {all[1], all[1]}, 100};
  CHECK(arranged(tree, wanted).order == std::vector<std::size_t>{0, 1});
}

TEST_CASE("one node of a large job is replaced: all others have the ranks that they had") {
  random_source chance(5);
  for (int round = 0; round < 20; ++round) {
    const auto tree = random_tree(chance, 200, 3, 4);
    auto spare = names(tree);
    const auto newcomer = spare.back();
    spare.pop_back();
    rank_request wanted{spare, {}, 1, {}, 1};
    const auto earlier = by_rank(wanted, arranged(tree, wanted));
    const auto gone = 1 + chance.below(earlier.size() - 1);
    wanted.first = earlier[0];
    wanted.previous = earlier;
    wanted.worse_by = 2;
    wanted.nodes = earlier;
    std::rotate(wanted.nodes.begin() + static_cast<std::ptrdiff_t>(gone),
                wanted.nodes.begin() + static_cast<std::ptrdiff_t>(gone) + 1, wanted.nodes.end());
    wanted.nodes.back() = newcomer;
    const auto made = arranged(tree, wanted);
    REQUIRE(made.kept);
    auto expected = earlier;
    expected[gone] = newcomer;
    REQUIRE(by_rank(wanted, made) == expected);
  }
}

TEST_CASE("requests that cannot be met") {
  const auto tree = guide();
  const auto refusal = [&tree](const rank_request& wanted) {
    const auto made = arrange(tree, wanted);
    REQUIRE_FALSE(made.has_value());
    return made.error().what;
  };
  CHECK(refusal({{"10.0.0.1"}, {}, 1, {}, 1}) == "node 10.0.0.1 is not in the topology");
  CHECK(refusal({{"192.168.0.1", "192.168.0.1"}, {}, 1, {}, 1}) ==
        "node 192.168.0.1 is named twice");
  CHECK(refusal({{"192.168.0.1"}, "192.168.0.2", 1, {}, 1}) ==
        "node 192.168.0.2 is to have rank 0 and is not in the job");
  CHECK(refusal({names(tree), {}, 4, {}, 1}) == "10 nodes cannot be divided into groups of 4");
  CHECK(refusal({names(tree), {}, 0, {}, 1}) == "10 nodes cannot be divided into groups of 0");
  CHECK(arrange(tree, {{}, {}, 1, {}, 1})->order.empty());
}

TEST_CASE("ten thousand nodes") {
  random_source chance(6);
  const auto tree = random_tree(chance, 10'000, 3, 12);
  for (const std::size_t group_size : {1, 8}) {
    const rank_request wanted{names(tree), name_of(4'711), group_size, {}, 1};
    const auto begin = std::chrono::steady_clock::now();
    const auto made = arranged(tree, wanted);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    MESSAGE("10,000 nodes in groups of " << group_size << ": " << took.count() << " ms");
    for (const auto& level : made.levels)
      CHECK((group_size == 1 ? level.after == level.optimum
                             : level.after.split_groups == level.optimum.split_groups));
  }
}
