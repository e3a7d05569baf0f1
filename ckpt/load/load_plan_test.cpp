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
    view.memory.push_back({id, 100});
  for (const auto& id : disk)
    view.disk.push_back({id, world_size, shards});
  return view;
}

load_question sharded(std::vector<rank_view> ranks) {
  load_question q;
  q.shards = static_cast<std::uint32_t>(ranks.size());
  q.ranks = std::move(ranks);
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
  same.ranks[1].memory.push_back({newest, 100}); // It has read it.
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
  for (auto& r : q.ranks)
    r.memory.push_back({first(80), 100});
  CHECK(in_words(plan_load(q)) == "step 80: memory memory");
}

TEST_CASE("a replicated state fits into a world of any size") {
  const auto it = first(50);
  auto q = replicated({rank({}, {it}), rank({}, {it}), rank({}, {it})});
  for (auto& r : q.ranks)
    r.disk[0].world_size = 7;
  CHECK(in_words(plan_load(q)) == "step 50: disk disk disk");
}
