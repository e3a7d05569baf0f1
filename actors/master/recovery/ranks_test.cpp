#include "actors/master/recovery/ranks.hpp"

#include "runtime/base/random.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

using namespace troupe;
using namespace troupe::actors;

namespace {

using history = std::map<node_name, std::uint32_t>;

std::string text(const std::vector<seat>& world) {
  std::string all;
  for (const auto& s : world)
    all += fmt::format("{}{}", all.empty() ? "" : " ", s.node);
  return all;
}

/// In order of arrival; "b=1" is b with --node-rank 1.
std::vector<candidate> arrive(const std::vector<std::string>& names) {
  std::vector<candidate> all;
  for (const auto& name : names) {
    candidate c;
    c.node = name.substr(0, name.find('='));
    if (c.node.size() < name.size())
      c.wanted_rank = static_cast<std::uint32_t>(std::stoul(name.substr(c.node.size() + 1)));
    c.slots = 1;
    c.arrival = all.size() + 1;
    all.push_back(c);
  }
  return all;
}

std::string ranks(const std::vector<std::string>& names, const history& previous = {}) {
  return text(assign_ranks(arrive(names), previous));
}

/// The contract once more, as slowly and plainly as it can be said: go through the positions one by
/// one and look for the node with the best claim to each.
std::vector<node_name> slow_ranks(std::vector<candidate> candidates, const history& previous) {
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
  std::map<std::uint32_t, node_name> seats;
  std::set<node_name> seated;
  const auto sit = [&](const candidate& c, std::uint32_t position) {
    if (seats.count(position))
      return;
    seats[position] = c.node;
    seated.insert(c.node);
  };
  for (const auto& c : candidates)
    if (c.wanted_rank)
      sit(c, *c.wanted_rank);
  for (const auto& c : candidates)
    if (!c.wanted_rank && previous.count(c.node))
      sit(c, previous.at(c.node));
  for (const bool with_wish : {true, false})
    for (const auto& c : candidates)
      for (std::uint32_t position = 0;
           c.wanted_rank.has_value() == with_wish && !seated.count(c.node); ++position)
        sit(c, position);
  std::vector<node_name> order;
  for (const auto& [position, node] : seats)
    order.push_back(node);
  return order;
}

std::vector<candidate> draw_candidates(random_source& random) {
  std::vector<candidate> all;
  const auto count = 1 + random.below(12);
  std::set<node_name> taken;
  for (std::uint64_t i = 0; i < count; ++i) {
    candidate c;
    c.node = "n" + std::to_string(random.below(20));
    if (!taken.insert(c.node).second)
      continue;
    c.slots = static_cast<std::uint32_t>(1 + random.below(8));
    c.address = c.node + ".lan";
    if (random.chance(0.3))
      c.wanted_rank = static_cast<std::uint32_t>(random.below(14));
    c.arrival = random.next();
    all.push_back(c);
  }
  return all;
}

history draw_history(random_source& random) {
  history all;
  for (std::uint64_t i = random.below(20); i > 0; --i)
    all["n" + std::to_string(random.below(20))] = static_cast<std::uint32_t>(random.below(14));
  return all;
}

} // namespace

TEST_SUITE("ranks") {
  TEST_CASE("without a past and without wishes, ranks follow the order of arrival") {
    CHECK(ranks({"c", "a", "b"}) == "c a b");
  }

  TEST_CASE("a node of many slots takes as many ranks, and the next begins behind it") {
    auto all = arrive({"a", "b", "c"});
    all[0].slots = 3;
    all[1].slots = 2;
    const auto world = assign_ranks(all, {});
    CHECK(world[0].first_rank == 0);
    CHECK(world[1].first_rank == 3);
    CHECK(world[2].first_rank == 5);
    CHECK(world[2].group_rank == 2);
  }

  TEST_CASE("workers are counted per role, in order of rank") {
    auto all = arrive({"a", "b", "c", "d"});
    const char* const roles[] = {"trainer", "reader", "trainer", "reader"};
    const std::uint32_t slots[] = {2, 1, 3, 4};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].role = roles[i];
      all[i].slots = slots[i];
    }
    std::string seen;
    for (const auto& s : assign_ranks(all, {}))
      seen += fmt::format("{}:{}/{} ", s.first_rank, s.first_role_rank, s.role_world_size);
    CHECK(seen == "0:0/5 2:0/5 3:2/5 6:1/5 ");
  }

  TEST_CASE("members keep their order, whichever comes back first") {
    CHECK(ranks({"c", "b", "a"}, {{"a", 0}, {"b", 1}, {"c", 2}}) == "a b c");
  }

  TEST_CASE("a newcomer takes the place of a node that is gone, so that the others keep theirs") {
    CHECK(ranks({"a", "c", "new"}, {{"a", 0}, {"b", 1}, {"c", 2}}) == "a new c");
  }

  TEST_CASE("when no newcomer takes a place, those behind it move up") {
    CHECK(ranks({"a", "c"}, {{"a", 0}, {"b", 1}, {"c", 2}}) == "a c");
  }

  TEST_CASE("newcomers fill holes from below and then the end") {
    CHECK(ranks({"b", "d", "x", "y", "z"}, {{"b", 1}, {"d", 3}}) == "x b y d z");
  }

  TEST_CASE("a node that asked for a rank has it") {
    CHECK(ranks({"a", "b=0"}) == "b a");
    CHECK(ranks({"a=1", "b=0"}) == "b a");
    CHECK(ranks({"a=2", "b", "c"}) == "b c a");
  }

  TEST_CASE("a wish for a rank beyond the world's is met as nearly as a dense world allows") {
    CHECK(ranks({"a=3", "b"}) == "b a");
  }

  TEST_CASE("a node that asked for a rank has it even from an earlier member") {
    CHECK(ranks({"a", "b=0"}, {{"a", 0}}) == "b a");
    CHECK(ranks({"a", "c", "b=1"}, {{"a", 0}, {"c", 1}}) == "a b c");
  }

  TEST_CASE("of two with the same past the earlier has it") {
    CHECK(ranks({"b", "a", "c"}, {{"a", 1}, {"b", 1}}) == "a b c");
  }

  TEST_CASE("without nodes there are no ranks") {
    CHECK(assign_ranks({}, {{"a", 0}}).empty());
  }

  TEST_CASE(
      "for any candidates and any past the ranks are a bijection, and what the contract says") {
    for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
      CAPTURE(seed);
      random_source random(seed);
      const auto candidates = draw_candidates(random);
      const auto past = draw_history(random);
      const auto world = assign_ranks(candidates, past);
      REQUIRE(world.size() == candidates.size());
      global_rank next = 0;
      std::vector<node_name> order;
      for (std::uint32_t i = 0; i < world.size(); ++i) {
        REQUIRE(world[i].group_rank == i);
        REQUIRE(world[i].first_rank == next);
        next += world[i].slots;
        order.push_back(world[i].node);
      }
      REQUIRE(order == slow_ranks(candidates, past));
      for (const auto& c : candidates) {
        const auto at = std::find_if(world.begin(), world.end(),
                                     [&](const seat& s) { return s.node == c.node; });
        REQUIRE(at != world.end());
        REQUIRE(at->slots == c.slots);
        REQUIRE(at->address == c.address);
      }
      // The order in which the caller lists them is no argument.
      auto shuffled = candidates;
      for (std::size_t i = shuffled.size(); i > 1; --i)
        std::swap(shuffled[i - 1], shuffled[random.below(i)]);
      REQUIRE(text(assign_ranks(shuffled, past)) == text(world));
    }
  }
}
