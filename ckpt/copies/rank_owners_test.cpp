#include "ckpt/copies/rank_owners.hpp"

#include "messages/node_names.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

struct member {
  std::string node;
  std::uint16_t slots;
};

void learn(rank_owners& owners, std::uint64_t generation, const std::vector<member>& members) {
  owners.learn(messages::build<messages::RankOwners>(
      {"master", {}, troupe::generation{generation}}, [&](messages::RankOwners::Builder b) {
        auto nodes = b.initNodes(static_cast<unsigned>(members.size()));
        auto slots = b.initSlots(static_cast<unsigned>(members.size()));
        for (unsigned i = 0; i < members.size(); ++i) {
          nodes.set(i, messages::fingerprint(members[i].node));
          slots.set(i, members[i].slots);
        }
      }));
}

std::string judged(const rank_owners& owners, const std::string& node, std::uint64_t generation,
                   std::uint32_t rank, std::uint32_t source = 1) {
  const auto m = messages::build<messages::CopyBegin>({}, [&](messages::CopyBegin::Builder b) {
    b.initKey().setGeneration(generation);
    auto ranks = b.initRanks(2);
    ranks.set(0, 99);
    ranks.set(1, rank);
    b.setSource(source);
  });
  return owners.validation_error(*m.read(), node).value_or("");
}

} // namespace

TEST_CASE("a node gives as the ranks that it runs") {
  rank_owners owners;
  learn(owners, 3, {{"a", 2}, {"b", 4}});
  CHECK(judged(owners, "a", 3, 0) == "");
  CHECK(judged(owners, "a", 3, 1) == "");
  CHECK(judged(owners, "b", 3, 2) == "");
  CHECK(judged(owners, "b", 3, 5) == "");
}

TEST_CASE("and as no other") {
  rank_owners owners;
  CHECK(judged(owners, "a", 3, 0) == "this node does not know yet which node runs which rank");
  learn(owners, 3, {{"a", 2}, {"b", 4}});
  CHECK(judged(owners, "a", 3, 2) ==
        "node a gives as rank 2, which it does not run in generation 3");
  CHECK(judged(owners, "b", 3, 1) != "");
  CHECK(judged(owners, "b", 3, 6) != "");
  CHECK(judged(owners, "c", 3, 0) != "");
  CHECK(judged(owners, "a", 3, 0, 2) == "member 2 of a group of 2 does not exist");
  rank_owners nobody;
  learn(nobody, 1, {});
  CHECK(judged(nobody, "a", 1, 0) != "");
}

TEST_CASE("the newest generation counts, whichever generation the snapshot is of") {
  rank_owners owners;
  learn(owners, 3, {{"a", 2}, {"b", 2}});
  learn(owners, 4, {{"b", 2}, {"c", 2}});
  // What it gives was saved before c took its place.
  CHECK(judged(owners, "a", 3, 0) ==
        "node a gives as rank 0, which it does not run in generation 4");
  CHECK(judged(owners, "b", 3, 0) == "");
  CHECK(judged(owners, "c", 5, 3) == "");
  // From a master that has a successor.
  learn(owners, 3, {{"a", 2}, {"b", 2}});
  CHECK(judged(owners, "a", 3, 0) != "");
  // On a new link to the master.
  learn(owners, 4, {{"b", 2}, {"c", 2}});
  CHECK(judged(owners, "c", 4, 2) == "");
}
