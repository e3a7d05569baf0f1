#include "ckpt/copies/rank_owners.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

struct member {
  std::string node;
  std::uint32_t first, slots;
};

void learn(rank_owners& owners, std::uint64_t generation, const std::vector<member>& members) {
  const auto m = messages::build<messages::Prepare>({}, [&](messages::Prepare::Builder b) {
    auto world = b.initWorld();
    world.setGeneration(generation);
    auto out = world.initMembers(static_cast<unsigned>(members.size()));
    for (unsigned i = 0; i < members.size(); ++i) {
      out[i].setNode(members[i].node);
      out[i].setFirstRank(members[i].first);
      out[i].setSlots(members[i].slots);
    }
  });
  owners.learn(m.read()->getWorld());
}

std::string judged(const rank_owners& owners, const std::string& node, std::uint64_t generation,
                   std::uint32_t rank, std::uint32_t giver = 1) {
  const auto m = messages::build<messages::CopyBegin>({}, [&](messages::CopyBegin::Builder b) {
    b.initKey().setGeneration(generation);
    auto ranks = b.initRanks(2);
    ranks.set(0, 99);
    ranks.set(1, rank);
    b.setGiver(giver);
  });
  return owners.objection(*m.read(), node).value_or("");
}

} // namespace

TEST_CASE("a node gives as the ranks that it runs") {
  rank_owners owners;
  learn(owners, 3, {{"a", 0, 2}, {"b", 2, 4}});
  CHECK(judged(owners, "a", 3, 0) == "");
  CHECK(judged(owners, "a", 3, 1) == "");
  CHECK(judged(owners, "b", 3, 2) == "");
  CHECK(judged(owners, "b", 3, 5) == "");
}

TEST_CASE("and as no other") {
  rank_owners owners;
  CHECK(judged(owners, "a", 3, 0) == "this node does not know yet which node runs which rank");
  learn(owners, 3, {{"a", 0, 2}, {"b", 2, 4}});
  CHECK(judged(owners, "a", 3, 2) ==
        "node a gives as rank 2, which it does not run in generation 3");
  CHECK(judged(owners, "b", 3, 1) != "");
  CHECK(judged(owners, "b", 3, 6) != "");
  CHECK(judged(owners, "c", 3, 0) != "");
  CHECK(judged(owners, "a", 3, 0, 2) == "member 2 of a group of 2 does not exist");
  rank_owners gap;
  learn(gap, 1, {{"a", 5, 1}});
  CHECK(judged(gap, "a", 1, 4) != "");
}

TEST_CASE("each generation has its own ranks; of an unknown one the newest counts") {
  rank_owners owners;
  learn(owners, 3, {{"a", 0, 2}, {"b", 2, 2}});
  learn(owners, 4, {{"b", 0, 2}, {"c", 2, 2}});
  CHECK(judged(owners, "a", 3, 0) == "");
  CHECK(judged(owners, "a", 4, 0) != "");
  CHECK(judged(owners, "b", 4, 0) == "");
  CHECK(judged(owners, "b", 2, 0) == "");
  CHECK(judged(owners, "a", 2, 0) != "");
  for (std::uint64_t g = 5; g < 100; ++g)
    learn(owners, g, {{"c", 0, 2}});
  CHECK(judged(owners, "a", 3, 0) != "");
}
