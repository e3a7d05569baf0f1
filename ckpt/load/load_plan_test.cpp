#include "ckpt/load/load_plan.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

using outcome = load_plan::outcome;

state_id state(std::uint64_t by, std::uint64_t save, std::uint64_t step) {
  return {{generation{by}, save}, step};
}

/// The fifth save of generation 1 was step 50, and so on.
state_id first(std::uint64_t step) {
  return state(1, step / 10, step);
}

rank_view rank(const std::vector<state_id>& memory, const std::vector<state_id>& disk = {},
               std::uint32_t world_size = 2, std::uint32_t shards = 2) {
  rank_view view;
  view.holds = true;
  for (const auto& id : memory)
    view.memory.push_back({id, 100, 0});
  for (const auto& id : disk)
    view.disk.push_back({id, world_size, shards});
  return view;
}

load_question sharded(std::vector<rank_view> ranks) {
  load_question q;
  q.shards = static_cast<std::uint32_t>(ranks.size());
  q.ranks = std::move(ranks);
  for (global_rank rank = 0; rank < q.ranks.size(); ++rank)
    for (auto& s : q.ranks[rank].memory)
      s.of = rank;
  // As if it had been looked before: what is complete at some ranks only will not be at all.
  for (const auto& r : q.ranks)
    for (const auto& step : r.disk)
      if (!q.seen_before || *q.seen_before < step.id)
        q.seen_before = step.id;
  return q;
}

load_question replicated(std::vector<rank_view> ranks) {
  auto q = sharded(std::move(ranks));
  q.shards = 1;
  for (auto& r : q.ranks)
    for (auto& step : r.disk)
      step.shards = 1;
  return q;
}

/// "step 50: memory disk", or what else comes of it.
std::string in_words(const load_plan& p) {
  switch (p.how) {
  case outcome::nothing:
    return "nothing";
  case outcome::look_again:
    return "look again";
  case outcome::look_deeper:
    return "look deeper";
  case outcome::misfit:
    return "misfit " + std::to_string(p.misfits.id.step);
  case outcome::reshard:
    return "reshard " + std::to_string(p.what.step);
  case outcome::load:
    break;
  }
  auto text = "step " + std::to_string(p.what.step) + ":";
  for (const auto& from : p.from)
    text += from ? std::string(" ") + to_string(*from) : " -";
  return text;
}

} // namespace

TEST_CASE("the newest state that all ranks can have, wherever each of them has it") {
  const auto old = first(50), newer = first(60), newest = first(70);
  const auto of_later = state(2, 1, 20); // The job went back, and has saved since.
  struct row {
    const char* what;
    load_question asked;
    const char* planned;
  };
  const row rows[] = {
      {"there is nothing", sharded({rank({}), rank({})}), "nothing"},
      {"all have it", sharded({rank({old, newer}), rank({newer, old})}), "step 60: memory memory"},
      {"one has lost it: the one before", sharded({rank({old, newer}), rank({old})}),
       "step 50: memory memory"},
      {"memory is old, the disk has what was made since",
       sharded({rank({old}, {newest}), rank({old}, {newest})}), "step 70: disk disk"},
      {"the disk is old", sharded({rank({newest}, {old}), rank({newest}, {old})}),
       "step 70: memory memory"},
      {"one has it in memory, the other on its disk",
       sharded({rank({newest}, {newest}), rank({}, {newest})}), "step 70: memory disk"},
      {"it is complete in one directory of two",
       sharded({rank({}, {newest, old}), rank({}, {old})}), "step 50: disk disk"},
      {"of a later generation, though its step is lower",
       sharded({rank({newest, of_later}), rank({of_later, newest})}), "step 20: memory memory"},
      {"on the disk as well", sharded({rank({newest}, {of_later}), rank({newest}, {of_later})}),
       "step 20: disk disk"},
      {"replicated: a rank that lacks it gets it", replicated({rank({newest}), rank({old})}),
       "step 70: memory peer"},
      {"replicated: a stale snapshot in memory is nothing to a step on the disk",
       replicated({rank({old}, {newest}), rank({}, {newest})}), "step 70: disk disk"},
      {"replicated: one directory has it, the other waits",
       replicated({rank({old}, {newest}), rank({old}, {old})}), "step 70: disk -"},
  };
  for (const auto& r : rows)
    CHECK_MESSAGE(in_words(plan_load(r.asked)) == r.planned, r.what);
}

TEST_CASE("what could not be had is not tried again; the next best source is, or an older state") {
  const auto old = first(50), newest = first(70);
  auto q = sharded({rank({old}, {newest, old}), rank({}, {newest, old})});
  REQUIRE(in_words(plan_load(q)) == "step 70: disk disk");
  q.failed.insert({1, source::disk, newest});
  CHECK(in_words(plan_load(q)) == "step 50: memory disk");
  q.failed.insert({1, source::disk, old});
  CHECK(in_words(plan_load(q)) == "nothing");

  auto same = replicated({rank({}, {newest, old}), rank({}, {newest, old})});
  same.failed.insert({0, source::disk, newest});
  CHECK(in_words(plan_load(same)) == "step 70: - disk");
  same.ranks[1].memory.push_back({newest, 100, 1}); // It has read it.
  CHECK(in_words(plan_load(same)) == "step 70: peer memory");
  CHECK(plan_load(same).sender == 1);
  same.failed.insert({0, source::peer, newest});
  CHECK(in_words(plan_load(same)) == "step 50: disk disk");
}

TEST_CASE("it is over when all that hold a snapshot have it") {
  const auto it = first(50);
  auto q = replicated({rank({it}), rank_view{}, rank({it})});
  CHECK(in_words(plan_load(q)) == "step 50: memory - memory");
  CHECK(plan_load(q).is_done());
  q.ranks[2].memory.clear();
  CHECK_FALSE(plan_load(q).is_done());
  CHECK_FALSE(plan_load(replicated({rank({}, {it}), rank({})})).is_done());
  CHECK_FALSE(load_plan{}.is_done());
  CHECK(plan_load(sharded({rank_view{}, rank_view{}})).how == outcome::nothing);
}

TEST_CASE("a step that is complete in one directory may be so in all a moment later") {
  const auto old = first(50), newest = first(70);
  auto q = sharded({rank({}, {newest, old}), rank({}, {old})});
  q.seen_before.reset();
  const auto plan = plan_load(q);
  CHECK(in_words(plan) == "look again");
  REQUIRE(plan.newest_seen == newest);
  q.seen_before = plan.newest_seen;
  CHECK(in_words(plan_load(q)) == "step 50: disk disk");
  // And one that only one rank has seen may have been removed for a newer one.
  auto crossed = sharded({rank({}, {newest}), rank({}, {old})});
  CHECK(in_words(plan_load(crossed)) == "nothing");
  crossed.seen_before = old;
  CHECK(in_words(plan_load(crossed)) == "look again");
  // What is in memory of all is as good, and newer.
  auto in_memory = sharded({rank({first(80)}, {newest}), rank({first(80)}, {})});
  in_memory.seen_before.reset();
  CHECK(in_words(plan_load(in_memory)) == "step 80: memory memory");
}

TEST_CASE("no older step is taken before all that could be newer are listed") {
  const auto old = first(50), between = first(60), newest = first(70);
  auto q = sharded({rank({old}, {newest, between}), rank({old}, {newest})});
  q.failed.insert({1, source::disk, newest});
  CHECK(in_words(plan_load(q)) == "step 50: memory memory");
  q.ranks[1].more_on_disk = true; // Perhaps it has `between`.
  CHECK(in_words(plan_load(q)) == "look deeper");
  q.ranks[1].disk.push_back({between, 2, 2});
  CHECK(in_words(plan_load(q)) == "step 60: disk disk");
}

TEST_CASE("a newest step of another world is told, and no older one taken for it") {
  const auto old = first(50), newest = first(70);
  auto q = sharded({rank({}, {old}), rank({}, {old})});
  for (auto& r : q.ranks)
    r.disk.insert(r.disk.begin(), {newest, 3, 3});
  CHECK(in_words(plan_load(q)) == "misfit 70");
  CHECK(plan_load(q).misfits.world_size == 3);
  // What was made after it, in this world, is newer.
  for (global_rank one = 0; one < 2; ++one)
    q.ranks[one].memory.push_back({first(80), 100, one});
  CHECK(in_words(plan_load(q)) == "step 80: memory memory");
}

TEST_CASE("a replicated state fits into a world of any size") {
  const auto it = first(50);
  auto q = replicated({rank({}, {it}), rank({}, {it}), rank({}, {it})});
  for (auto& r : q.ranks)
    r.disk[0].world_size = 7;
  CHECK(in_words(plan_load(q)) == "step 50: disk disk disk");
}

namespace {

/// The ranks' nodes have got other ranks: the node of rank i has become `to[i]`.
load_question moved(const load_question& q, const std::vector<global_rank>& to) {
  auto after = q;
  for (global_rank rank = 0; rank < to.size(); ++rank)
    after.ranks[to[rank]] = q.ranks[rank];
  return after;
}

std::string in_words(const std::vector<moved_snapshot>& moves) {
  std::string text;
  for (const auto& one : moves)
    text += std::to_string(one.source) + ">" + std::to_string(one.to) + " ";
  return text;
}

} // namespace

TEST_CASE("a rank whose node had another rank gets its own part from the node that had this one") {
  const auto old = first(50), newest = first(70);
  const auto before = sharded({rank({newest, old}), rank({newest, old}), rank({newest, old})});
  const auto rotated = plan_load(moved(before, {1, 2, 0}));
  CHECK(in_words(rotated) == "step 70: peer peer peer");
  CHECK(in_words(rotated.moves) == "1>0 2>1 0>2 ");
  CHECK(rotated.moves.front().bytes == 100);
  CHECK_FALSE(rotated.is_done());
  const auto swapped = plan_load(moved(before, {0, 2, 1}));
  CHECK(in_words(swapped) == "step 70: memory peer peer");
  CHECK(in_words(swapped.moves) == "2>1 1>2 ");
  // Of a step that is older than what all have in memory nothing is moved.
  auto some = moved(before, {1, 0, 2});
  some.ranks[0].memory.insert(some.ranks[0].memory.begin(), {first(80), 100, 0});
  CHECK(in_words(plan_load(some)) == "step 70: peer peer memory");
}

TEST_CASE("a part that has arrived is its rank's own, wherever another copy of it lies") {
  const auto it = first(50);
  auto q = moved(sharded({rank({it}), rank({it})}), {1, 0});
  q.ranks[0].memory.push_back({it, 100, 0});
  CHECK(in_words(plan_load(q)) == "step 50: memory peer");
  q.ranks[1].memory.push_back({it, 100, 1});
  CHECK(in_words(plan_load(q)) == "step 50: memory memory");
  CHECK(plan_load(q).is_done());
  // And back again: nothing is to be sent.
  CHECK(plan_load(moved(q, {1, 0})).is_done());
}

TEST_CASE("a part that went with its node comes from the disk, or its state is lost and named") {
  const auto old = first(50), newest = first(70);
  auto q = moved(sharded({rank({newest}, {old}), rank({newest}, {old}), rank({newest}, {old})}),
                 {1, 0, 2});
  for (auto& r : q.ranks)
    for (auto& step : r.disk)
      step.world_size = step.shards = 3;
  q.ranks[0].memory.clear(); // the node that had rank 1
  CHECK(in_words(plan_load(q)) == "step 50: disk disk disk");
  for (auto& r : q.ranks)
    r.disk.front().id = newest;
  q.seen_before = newest;
  CHECK(in_words(plan_load(q)) == "step 70: peer disk memory");
  // What could not be sent is read, too.
  q.failed.insert({0, source::peer, newest});
  CHECK(in_words(plan_load(q)) == "step 70: disk disk memory");
  q.failed.clear();
  for (auto& r : q.ranks)
    r.disk.clear();
  const auto none = plan_load(q);
  CHECK(in_words(none) == "nothing");
  REQUIRE(none.lost);
  CHECK(none.lost->id == newest);
  CHECK(none.lost->of == 1);
  CHECK_FALSE(plan_load(sharded({rank({}), rank({})})).lost);
}

namespace {

/// Of a world of four ranks with a shard each, two of them at each node that is left.
load_question after_four() {
  load_question q;
  q.shards = 2;
  q.any_world = true;
  const auto both = [](global_rank one, global_rank other, const state_id& id) {
    rank_view r;
    r.holds = true;
    r.foreign = {{id, 100, one, one, 4, 4}, {id, 100, other, other, 4, 4}};
    return r;
  };
  q.ranks = {both(2, 0, first(50)), both(3, 1, first(50))};
  return q;
}

std::string in_words(const std::vector<foreign_part>& parts) {
  std::string text;
  for (const auto& one : parts)
    text += std::to_string(one.of) + "@" + std::to_string(one.at) + " ";
  return text;
}

} // namespace

TEST_CASE("a state of another world is read from where its parts are, if all are there") {
  auto q = after_four();
  const auto plan = plan_load(q);
  REQUIRE(plan.how == load_plan::outcome::reshard);
  CHECK(plan.what == first(50));
  CHECK(in_words(plan.parts) == "0@0 1@1 2@0 3@1 ");
  CHECK(plan.misfits.world_size == 4);
  CHECK(plan.misfits.shards == 4);
  CHECK_FALSE(plan.is_done());
  SUBCASE("not for a load that wants its own parts only") {
    q.any_world = false;
    CHECK(plan_load(q).how == load_plan::outcome::nothing);
  }
  SUBCASE("not if one is missing") {
    q.ranks[1].foreign.pop_back();
    CHECK(plan_load(q).how == load_plan::outcome::nothing);
  }
  SUBCASE("an older one, if of the newest a part is missing") {
    q.ranks[0].foreign.push_back({first(60), 100, 0, 0, 4, 4});
    CHECK(plan_load(q).what == first(50));
  }
  SUBCASE("a part that is there twice is read at the first") {
    q.ranks[1].foreign.push_back({first(50), 100, 0, 0, 4, 4});
    CHECK(in_words(plan_load(q).parts) == "0@0 1@1 2@0 3@1 ");
  }
}

TEST_CASE("of this world's states, another's in memory and another's on a disk the newest counts") {
  auto q = after_four();
  const auto how = [&q] { return plan_load(q).how; };
  q.ranks[0].disk = q.ranks[1].disk = {{first(40), 4, 4}};
  CHECK(how() == load_plan::outcome::reshard);
  q.ranks[0].disk = q.ranks[1].disk = {{first(50), 4, 4}};
  CHECK(how() == load_plan::outcome::reshard); // The same state: memory is nearer.
  q.ranks[0].disk = q.ranks[1].disk = {{first(60), 4, 4}};
  CHECK(how() == load_plan::outcome::misfit);
  q.ranks[0].memory = {{first(70), 100, 0}};
  q.ranks[1].memory = {{first(70), 100, 1}};
  CHECK(how() == load_plan::outcome::load);
  q.ranks[0].disk = q.ranks[1].disk = {};
  q.ranks[0].memory.front().id = q.ranks[1].memory.front().id = first(45);
  CHECK(how() == load_plan::outcome::reshard);
}

TEST_CASE("ranks that contradict each other on what a state was are not put together") {
  auto q = after_four();
  for (auto& s : q.ranks[1].foreign)
    s.shards = 8;
  CHECK(plan_load(q).how == load_plan::outcome::nothing);
  for (auto& s : q.ranks[1].foreign) {
    s.shards = 4;
    s.shard = 9;
  }
  CHECK(plan_load(q).how == load_plan::outcome::nothing);
}
