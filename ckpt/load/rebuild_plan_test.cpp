#include "ckpt/arena/held_piece.hpp"
#include "ckpt/load/load_plan.hpp"
#include "runtime/base/random.hpp"

#include <doctest/doctest.h>
#include <libdeflate.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

const state_id made{{generation{1}, 3}, 5};

/// The snapshot of a member, of a size and bytes of its own.
std::string a_snapshot(std::uint32_t member, std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1000, 4097, 64, 1, 777, 130};
  random_source random(seed * 100 + member);
  std::string bytes(sizes[member % 6], '\0');
  for (auto& b : bytes)
    b = static_cast<char>(random.below(256));
  return bytes;
}

/// Groups of ranks, one rank at a node, with all their snapshots and parities. Ranks of a group are
/// `groups` apart.
struct nodes {
  code by;
  state_id id;
  std::vector<std::string> snapshots;                                ///< by rank
  std::vector<rank_view> views;                                      ///< by rank
  std::map<std::pair<global_rank, std::uint64_t>, std::string> sums; ///< by rank and slot

  explicit nodes(code c, std::uint32_t groups = 1, state_id of = made) : by(c), id(of) {
    views.resize(c.members * groups);
    for (global_rank rank = 0; rank < views.size(); ++rank) {
      snapshots.push_back(a_snapshot(rank / groups, rank % groups));
      views[rank].holds = true;
      views[rank].memory.push_back({id, snapshots.back().size(), rank});
    }
    for (std::uint32_t group = 0; group < groups; ++group)
      for (std::uint32_t stripe = 0; stripe < c.members; ++stripe)
        for (std::uint32_t row = 0; row < c.parity; ++row)
          hold(group, groups, stripe, row);
  }

  void hold(std::uint32_t group, std::uint32_t groups, std::uint32_t stripe, std::uint32_t row) {
    parity_seen p{id, by, stripe, row, stripe * by.parity + row, 1 + stripe, {}, {}, {}};
    std::string sum(5000, '\0');
    for (std::uint32_t member = 0; member < by.members; ++member) {
      const global_rank rank = member * groups + group;
      const auto& bytes = snapshots[rank];
      const auto piece = piece_of(by, member, stripe);
      p.ranks.push_back(rank);
      p.bytes.push_back(piece ? bytes.size() : 0);
      p.crc32.push_back(piece ? libdeflate_crc32(0, bytes.data(), bytes.size()) : 0);
      if (!piece)
        continue;
      const auto part = piece_in(by, bytes.size(), *piece);
      accumulate(sum.data(), bytes.data() + part.from, part.bytes, coefficient(by, row, member));
    }
    const auto at = target(by, stripe, row) * groups + group;
    sums[{at, p.slot}] = std::string(held_piece::bytes_before, '?') + sum;
    views[at].parities.push_back(std::move(p));
  }

  /// What ranks see when these have lost all that their nodes held.
  std::vector<rank_view> without(const std::vector<global_rank>& lost) const {
    auto seen = views;
    for (const auto rank : lost) {
      seen[rank].memory.clear();
      seen[rank].parities.clear();
    }
    return seen;
  }

  /// What comes of a plan. `node_of`: the rank that a rank's node had when all was saved, if that
  /// was another.
  std::map<global_rank, std::string>
  carried_out(const rebuild_plan& plan, const std::vector<global_rank>& node_of = {}) const {
    std::map<global_rank, std::string> all;
    for (const auto& one : plan.rebuilt)
      all[one.rank].resize(one.bytes);
    for (const auto& t : plan.transfers) {
      const auto node = node_of.empty() ? t.source : node_of[t.source];
      if (node_of.empty() || t.parity)
        CHECK(t.of == t.source);
      const auto& from = t.parity ? sums.at({node, t.parity->slot}) : snapshots[t.of];
      REQUIRE(t.end <= from.size());
      REQUIRE(t.into + (t.end - t.begin) <= all.at(t.to).size());
      accumulate(all[t.to].data() + t.into, from.data() + t.begin, t.end - t.begin, t.times);
    }
    return all;
  }
};

std::vector<std::vector<global_rank>> subsets(std::uint32_t of, std::uint32_t most) {
  std::vector<std::vector<global_rank>> all;
  for (std::uint32_t bits = 1; bits < (1u << of); ++bits) {
    std::vector<global_rank> one;
    for (std::uint32_t i = 0; i < of; ++i)
      if ((bits >> i & 1) != 0)
        one.push_back(i);
    if (one.size() <= most)
      all.push_back(one);
  }
  return all;
}

load_plan planned(std::vector<rank_view> ranks) {
  load_question q;
  q.shards = static_cast<std::uint32_t>(ranks.size());
  q.ranks = std::move(ranks);
  return plan_load(q);
}

} // namespace

TEST_CASE("each rank that has lost its snapshot gets it as it was") {
  for (const auto c : {code{2, 1}, code{3, 1}, code{3, 2}, code{4, 2}, code{5, 2}, code{5, 4}})
    for (const std::uint32_t groups : {1u, 2u}) {
      const nodes all(c, groups);
      for (auto lost : subsets(c.members, c.parity)) {
        for (auto& member : lost)
          member *= groups; // of the first group
        const auto plan = planned(all.without(lost));
        REQUIRE(plan.how == load_plan::outcome::load);
        CHECK(plan.pieces.rebuilt.size() == lost.size());
        const auto again = all.carried_out(plan.pieces);
        for (const auto& one : plan.pieces.rebuilt) {
          CHECK(plan.from[one.rank] == source::pieces);
          CHECK(again.at(one.rank) == all.snapshots[one.rank]);
          const auto& bytes = all.snapshots[one.rank];
          CHECK(one.crc32 == libdeflate_crc32(0, bytes.data(), bytes.size()));
        }
      }
    }
}

TEST_CASE("more than there are parities are lost for good; one of each group may be") {
  CHECK(planned(nodes({3, 1}).without({0, 1})).how == load_plan::outcome::nothing);
  CHECK(planned(nodes({4, 2}).without({0, 1, 2})).how == load_plan::outcome::nothing);
  const nodes three({2, 1}, 3);
  CHECK(planned(three.without({0, 1, 5})).pieces.rebuilt.size() == 3);
  CHECK(planned(three.without({0, 3})).how == load_plan::outcome::nothing); // both of one
}

TEST_CASE("what all have needs no pieces, and a newer state that all can have does") {
  const state_id newer_id{{generation{2}, 1}, 3};
  const nodes old({3, 1}), newer({3, 1}, 1, newer_id);
  CHECK(planned(old.views).is_done());
  const auto both = [&](std::vector<rank_view> seen) {
    for (global_rank rank = 0; rank < seen.size(); ++rank)
      seen[rank].memory.push_back(old.views[rank].memory.front());
    return seen;
  };
  CHECK(planned(both(newer.without({1}))).what == newer_id);
  auto few = newer.without({1}); // Of the newer one a piece is missing.
  for (auto& view : few)
    view.parities.erase(std::remove_if(view.parities.begin(), view.parities.end(),
                                       [](const parity_seen& p) { return p.stripe == 2; }),
                        view.parities.end());
  CHECK(planned(both(few)).what == made);
  load_question q;
  q.shards = 3;
  q.ranks = both(newer.without({1}));
  q.failed.insert({1, source::pieces, newer_id}); // It was not what had been saved.
  CHECK(plan_load(q).what == made);
}

TEST_CASE("parities that do not agree with what is there, or with each other, are of no use") {
  const auto nothing = load_plan::outcome::nothing;
  const nodes three({3, 1});
  auto resized = three.without({1});
  resized[0].memory.front().bytes += 1;
  CHECK(planned(resized).how == nothing);
  auto disagreeing = three.without({1});
  for (auto& p : disagreeing[0].parities)
    p.crc32 = {1, 2, 3};
  CHECK(planned(disagreeing).how == nothing);
  // Of two rows of a stripe, both needed, one is a sum of another snapshot of the third rank.
  const nodes five({5, 2});
  auto mixed = five.without({0, 1});
  REQUIRE(planned(mixed).how == load_plan::outcome::load);
  for (auto& view : mixed)
    for (auto& p : view.parities)
      if (p.stripe == 3 && p.row == 1)
        p.crc32[2] += 1;
  CHECK(planned(mixed).how == nothing);
  // And what no node has written is not followed.
  auto broken = three.without({1});
  for (auto& view : broken)
    for (auto& p : view.parities)
      p.ranks[2] = 99;
  CHECK(planned(broken).how == nothing);
}

TEST_CASE("a rank takes the parity that is at its own node") {
  const nodes three({3, 2});
  auto seen = three.without({2});
  for (auto p : three.views[0].parities) {
    p.slot = 99;
    seen[2].parities.push_back(p);
  }
  const auto plan = planned(seen);
  REQUIRE_FALSE(plan.pieces.transfers.empty());
  for (const auto& t : plan.pieces.transfers) {
    CHECK(t.source == 2);
    REQUIRE(t.parity);
    CHECK(t.parity->slot == 99);
  }
}

TEST_CASE(
    "nodes got other ranks and some were lost: each rank's own part is sent to it, or summed") {
  for (const auto c : {code{2, 1}, code{3, 1}, code{3, 2}, code{4, 2}}) {
    const nodes all(c);
    std::vector<global_rank> node_of(c.members);
    std::iota(node_of.begin(), node_of.end(), 0);
    do {
      for (const auto& lost : subsets(c.members, c.parity)) {
        const auto at_nodes = all.without(lost);
        std::vector<rank_view> seen(c.members);
        for (global_rank rank = 0; rank < c.members; ++rank)
          seen[rank] = at_nodes[node_of[rank]];
        const auto plan = planned(seen);
        REQUIRE(plan.how == load_plan::outcome::load);
        const auto summed = all.carried_out(plan.pieces, node_of);
        CHECK(summed.size() == lost.size());
        for (const auto rank : lost) {
          CHECK(plan.from[rank] == source::pieces);
          CHECK(summed.at(rank) == all.snapshots[rank]);
        }
        for (const auto& one : plan.moves) {
          CHECK(plan.from[one.to] == source::peer);
          CHECK(node_of[one.source] == one.to);
          CHECK(one.bytes == all.snapshots[one.to].size());
        }
        for (global_rank rank = 0; rank < c.members; ++rank)
          if (plan.from[rank] == source::memory)
            CHECK(node_of[rank] == rank);
      }
    } while (std::next_permutation(node_of.begin(), node_of.end()));
  }
}

TEST_CASE("a part that was not to be had from where it lies is summed without it") {
  const nodes two({2, 1});
  load_question q;
  q.shards = 2;
  q.ranks = {two.views[1], two.views[0]};
  q.failed.insert({0, source::peer, made});
  const auto plan = plan_load(q);
  CHECK(plan.from[0] == source::pieces);
  CHECK(plan.from[1] == source::peer);
  CHECK(two.carried_out(plan.pieces, {1, 0}).at(0) == two.snapshots[0]);
}
