#include "actors/master/network_check/network_check_core_links.hpp"
#include "runtime/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::actors::network_check;

namespace {

bool covers(const std::vector<link>& links, const std::vector<node_index>& nodes) {
  const auto in = [&](node_index n) { return std::count(nodes.begin(), nodes.end(), n) > 0; };
  return std::all_of(links.begin(), links.end(),
                     [&](const link& l) { return in(l.first) || in(l.second); });
}

/// (nodes, those of them that are not slow) of the best of all subsets.
std::pair<std::size_t, std::size_t> best_of_all(const std::vector<link>& links, node_index nodes,
                                                const std::vector<bool>& slow) {
  std::pair<std::size_t, std::size_t> best{nodes + 1, 0};
  for (unsigned set = 0; set < 1u << nodes; ++set) {
    std::vector<node_index> chosen;
    std::size_t not_slow = 0;
    for (node_index n = 0; n < nodes; ++n)
      if (set >> n & 1) {
        chosen.push_back(n);
        not_slow += !slow[n];
      }
    if (covers(links, chosen))
      best = std::min(best, {chosen.size(), not_slow});
  }
  return best;
}

} // namespace

TEST_SUITE("network_check links") {
  const std::vector<bool> none_slow(8, false);

  TEST_CASE("without links none leaves, and of one link the later end does") {
    CHECK(fewest_ends({}, none_slow).empty());
    CHECK(fewest_ends({{2, 5}}, none_slow) == std::vector<node_index>{5});
  }

  TEST_CASE("a slow end leaves before one that is not") {
    auto slow = none_slow;
    slow[2] = true;
    CHECK(fewest_ends({{2, 5}}, slow) == std::vector<node_index>{2});
  }

  TEST_CASE("the common end of several links leaves alone") {
    CHECK(fewest_ends({{0, 1}, {0, 2}, {0, 3}}, none_slow) == std::vector<node_index>{0});
  }

  TEST_CASE("no set with fewer nodes, or with as many and more slow ones, has all links") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CAPTURE(seed);
      random_source random(seed);
      std::vector<link> links;
      std::vector<bool> slow;
      const auto density = random.unit() * 0.7;
      for (node_index a = 0; a < 8; ++a) {
        slow.push_back(random.chance(0.3));
        for (node_index b = a + 1; b < 8; ++b)
          if (links.size() < 20 && random.chance(density))
            links.emplace_back(a, b);
      }
      const auto chosen = fewest_ends(links, slow);
      REQUIRE(covers(links, chosen));
      const auto not_slow = static_cast<std::size_t>(
          std::count_if(chosen.begin(), chosen.end(), [&](node_index n) { return !slow[n]; }));
      REQUIRE(std::pair(chosen.size(), not_slow) == best_of_all(links, 8, slow));
    }
  }

  TEST_CASE("very many links that hang together are all cut, too") {
    random_source random(3);
    std::vector<link> links;
    for (node_index n = 1; n < 16'384; ++n)
      links.emplace_back(static_cast<node_index>(random.below(n)), n);
    CHECK(covers(links, fewest_ends(links, std::vector<bool>(16'384, false))));
  }
}
