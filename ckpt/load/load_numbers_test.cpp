#include "ckpt/load/load_numbers.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

using numbers = std::vector<std::uint64_t>;

state_id state(std::uint64_t step) {
  return {{generation{7}, step / 10}, step};
}

rank_view a_view() {
  rank_view view;
  view.holds = true;
  view.more_on_disk = true;
  view.memory = {{state(20), 1000, 0}, {state(10), 900, 1}};
  view.disk = {{state(10), 2, 2}};
  view.foreign = {{state(30), 800, 5, 2, 3, 6}};
  view.parities = {{state(20), {2, 1}, 1, 0, 3, 44, {0, 1}, {0, 1000}, {0, 0xffffffff}}};
  return view;
}

numbers question(const std::vector<rank_view>& ranks) {
  numbers all{2, 1, 1, 7, 2, 20, 1, 1, 3, 7, 1, 10}; // rank 1 could not read step 10
  for (const auto& view : ranks) {
    const auto row = to_numbers(view);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

} // namespace

TEST_CASE("what ranks tell each other comes out as it went in") {
  const auto said = question({a_view(), rank_view{}});
  const auto q = question_of(said.data(), said.size());
  REQUIRE_MESSAGE(q, q.error().what);
  CHECK(q->shards == 2);
  CHECK(q->any_world);
  CHECK(q->seen_before == state(20));
  REQUIRE(q->failed.size() == 1);
  CHECK(q->failed.begin()->rank == 1);
  CHECK(q->failed.begin()->from == source::disk);
  CHECK(q->failed.begin()->id == state(10));
  REQUIRE(q->ranks.size() == 2);
  CHECK(to_numbers(q->ranks[0]) == to_numbers(a_view()));
  CHECK(q->ranks[0].foreign.at(0).of == 5);
  CHECK(q->ranks[0].foreign.at(0).world_size == 6);
  CHECK(q->ranks[0].parities.at(0).crc32 == std::vector<std::uint32_t>{0, 0xffffffff});
  CHECK_FALSE(q->ranks[1].holds);
}

TEST_CASE("a row that is cut, or holds what cannot be, is refused and read no further") {
  const auto said = question({a_view()});
  for (std::size_t count = 0; count < said.size(); ++count)
    if (const auto cut = question_of(said.data(), count); cut)
      CHECK(cut->ranks.empty()); // Before the first rank's.
  for (std::size_t at = 0; at < said.size(); ++at) {
    auto spoilt = said;
    spoilt[at] = ~std::uint64_t{0};
    const auto read = question_of(spoilt.data(), spoilt.size());
    if (read)
      CHECK(read->ranks.size() == 1); // A number that may be any: a step, a size.
  }
}

TEST_CASE("a plan in numbers") {
  load_plan plan;
  plan.how = load_plan::outcome::load;
  plan.what = state(20);
  plan.newest_seen = state(10);
  plan.sender = 1;
  plan.from = {source::pieces, std::nullopt, source::memory};
  plan.pieces.rebuilt = {{0, 1000, 77}};
  plan.pieces.transfers = {{2, 3, std::nullopt, 5, 15, 0, 500, 3},
                           {1, 1, transfer::parity_at{3, 44}, 4096, 4106, 0, 0, 1}};
  plan.moves = {{2, 1, 800}};
  plan.lost = lost_part{state(30), 6};
  plan.parts = {{1, 5}, {0, 4}};
  CHECK(to_numbers(plan) == numbers{1, 0,                         // load, not done
                                    7, 2, 20,   1,  7,  1,    10, // what, newest seen
                                    0, 0, 0,    1,                // misfit, sender
                                    3, 3, 0,    1,                // from
                                    1, 0, 1000, 77,               // rebuilt
                                    2, 2, 3,    0,  0,  0,    5,    15, 0, 500, 3, // transfers
                                    1, 1, 1,    3,  44, 4096, 4106, 0,  0, 1,   1,
                                    2, 1, 800,           // moves
                                    1, 7, 3,    30, 6,   // lost
                                    2, 1, 5,    0,  4}); // parts
}
