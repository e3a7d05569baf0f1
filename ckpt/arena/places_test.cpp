#include "ckpt/arena/testing/process.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

using namespace troupe::ckpt;
using testing::process;
using testing::somewhere;

/// Snapshots of several places in one table.
namespace {

constexpr place_id a = 11, b = 22, c = 33;

bool none_open(place_id) {
  return false;
}

struct several {
  process p;
  slots at(place_id place, std::size_t count = 2) { return {*p.table, count, place}; }
  std::size_t save(place_id place, std::uint64_t step, bool to_disk = false) {
    auto words = at(place);
    const auto slot = words.begin();
    REQUIRE(slot);
    words.finish(*slot, process::snapshot(step), somewhere(), to_disk);
    return *slot;
  }
  void complete(std::size_t slot) { p.s.finalize(slot, p.s.word(slot).sequence, {true, ""}); }
  std::uint64_t newest_step(place_id place) {
    const auto words = at(place);
    return words.snapshot(words.newest().value()).step;
  }
};

} // namespace

TEST_CASE("a place sees its own snapshots alone, and each keeps as many as it would by itself") {
  several all;
  for (std::uint64_t step = 1; step < 8; ++step) {
    all.save(a, step);
    all.save(b, 100 + step);
    CHECK(all.newest_step(a) == step);
    CHECK(all.newest_step(b) == 100 + step);
    CHECK_FALSE(all.at(c).newest());
  }
  std::size_t used = 0;
  for (std::size_t i = 0; i < slots::count(); ++i)
    used += all.p.s.word(i).state == slot_state::empty ? 0 : 1;
  CHECK(used == 4);
  CHECK(all.p.s.places() == std::vector<place_id>{b, a});
}

TEST_CASE("what all ranks have, and what stays for others, is said of one place") {
  several all;
  const auto common = all.save(a, 1), base = all.save(b, 101);
  all.at(a).set_rollback_point(all.p.s.word(common).sequence);
  all.at(b).set_replica_base(all.p.s.word(base).sequence);
  CHECK_FALSE(all.at(b).rollback_point());
  CHECK_FALSE(all.at(a).replica_base());
  for (std::uint64_t step = 2; step < 9; ++step) {
    CHECK(all.save(a, step) != common);
    CHECK(all.save(b, 100 + step) != base);
  }
  CHECK(all.at(a).rollback_point() == common);
  CHECK(all.at(b).replica_base() == base);
  // What another place's ranks say of theirs takes nothing from these.
  all.at(b).set_rollback_point(0);
  all.at(a).set_replica_base(std::nullopt);
  CHECK(all.at(a).rollback_point() == common);
  CHECK(all.at(b).replica_base() == base);
}

TEST_CASE("a mark is of one snapshot, and not of what comes after it in its slot") {
  several all;
  const auto slot = all.save(a, 1);
  all.at(a).set_replica_base(all.p.s.word(slot).sequence);
  all.at(a).set_replica_base(all.p.s.word(all.save(a, 2)).sequence);
  while (all.save(a, 3) != slot) {
  }
  CHECK(all.at(a).replica_base() != slot);
  // Neither if the next one there is another place's.
  const auto gone = all.at(b).evict(surplus::idle_in_memory, none_open);
  REQUIRE(gone);
  const auto taken = all.at(b).begin();
  REQUIRE(taken == gone->slot);
  auto words = all.at(b);
  words.abandon(*taken);
}

TEST_CASE("what goes for another place goes in this order") {
  several all;
  // Of `a`, which is open, an older one and the one that all have; of `b`, closed, the same, and
  // that is on the disk; of `c`, closed, one that only memory has.
  const auto a_old = all.save(a, 1), a_last = all.save(a, 2);
  all.at(a).set_rollback_point(all.p.s.word(a_last).sequence);
  const auto b_old = all.save(b, 101, true), b_last = all.save(b, 102, true);
  all.at(b).set_rollback_point(all.p.s.word(b_last).sequence);
  const auto c_last = all.save(c, 201);
  const auto is_open = [](place_id one) { return one == a; };
  constexpr place_id d = 44;
  // Whatever is being written stays.
  CHECK(all.at(d).evict(surplus::idle_on_disk, is_open) == std::nullopt);
  CHECK(all.at(d).others_are_busy());
  all.complete(b_old);
  all.complete(b_last);
  CHECK_FALSE(all.at(d).others_are_busy());
  const std::vector<std::pair<surplus, std::size_t>> order{{surplus::of_idle, b_old},
                                                           {surplus::idle_on_disk, b_last},
                                                           {surplus::of_open, a_old},
                                                           {surplus::idle_in_memory, c_last},
                                                           {surplus::open_in_memory, a_last}};
  for (const auto& next : order) {
    const auto what = next.first;
    const auto slot = next.second;
    CAPTURE(static_cast<int>(what));
    if (what != surplus::of_idle)
      CHECK_FALSE(all.at(d).evict(static_cast<surplus>(static_cast<int>(what) - 1), is_open));
    const auto gone = all.at(d).evict(surplus::open_in_memory, is_open);
    REQUIRE(gone);
    CHECK(gone->what == what);
    CHECK(gone->slot == slot);
    CHECK(all.p.s.word(slot).state == slot_state::empty);
  }
  CHECK_FALSE(all.at(d).evict(surplus::open_in_memory, is_open));
}

TEST_CASE(
    "nothing that is read, mapped, or written goes for another place; nor what others rely on, "
    "as long as something else would do") {
  several all;
  const auto held = all.save(a, 1), mapped = all.save(b, 101), requested = all.save(c, 201, true);
  REQUIRE(all.p.s.hold(held));
  REQUIRE(all.p.s.set_mapped(mapped, all.p.s.word(mapped).sequence));
  CHECK_FALSE(all.at(44).evict(surplus::open_in_memory, none_open));
  all.p.s.release(held);
  all.at(a).set_replica_base(all.p.s.word(held).sequence);
  CHECK_FALSE(all.at(44).evict(surplus::of_open, none_open));
  CHECK(all.at(44).evict(surplus::idle_in_memory, none_open)->slot == held);
  CHECK(all.p.s.word(requested).state == slot_state::ready);
}

TEST_CASE("a save that is taken back gives the slot back to its place") {
  several all;
  for (std::uint64_t step = 1; step <= 2; ++step)
    all.save(a, step);
  auto words = all.at(a);
  const auto begun = words.begin();
  REQUIRE(begun);
  CHECK(words.snapshot(*begun).step == 1);
  words.take_back(*begun);
  CHECK(words.place_of(*begun) == a);
  auto other = all.at(b);
  const auto empty = other.begin();
  REQUIRE(empty);
  other.take_back(*empty);
  CHECK_FALSE(other.newest());
  CHECK(all.newest_step(a) == 2);
}

TEST_CASE("when every slot has a snapshot, a new place begins where one of another has gone") {
  several all;
  for (place_id place = 1; place <= slots::count(); ++place)
    all.save(place, place);
  CHECK_FALSE(all.at(99).begin());
  REQUIRE(all.at(99).evict(surplus::idle_in_memory, none_open)->place == 1);
  CHECK(all.save(99, 9) == 0);
  CHECK(all.newest_step(99) == 9);
  CHECK(all.newest_step(2) == 2);
}

// Each side of each place may be killed between any two changes of the table.
TEST_CASE("whatever places save and whichever process dies: what a place loads is its own newest, "
          "unless it went for another's") {
  std::map<surplus, int> gone_as;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 chance(seed);
    several all;
    std::vector<slots> of;
    for (place_id place = 1; place <= 5; ++place)
      of.push_back(all.at(place * 1000, 2 + seed % 3));
    std::map<place_id, std::uint64_t> newest, common;
    std::map<place_id, std::size_t> begun;
    std::multiset<std::size_t> held;
    std::set<place_id> open;
    std::uint64_t step = 0;
    const auto is_open = [&](place_id one) { return open.count(one) != 0; };
    for (int i = 0; i < 300; ++i) {
      auto& words = of[chance() % of.size()];
      const auto place = words.place();
      const auto slot = chance() % slots::count();
      switch (chance() % 12) {
      case 0:
      case 1:
        open.insert(place);
        if (begun.count(place) == 0) {
          auto next = words.begin();
          if (!next)
            if (const auto gone = words.evict(surplus::open_in_memory, is_open)) {
              ++gone_as[gone->what];
              if (gone->what != surplus::of_idle && gone->what != surplus::of_open) {
                newest.erase(gone->place);
                common.erase(gone->place);
              }
              next = words.begin();
            }
          if (next)
            begun[place] = *next;
        }
        break;
      case 2:
      case 3:
        if (const auto at = begun.find(place); at != begun.end()) {
          auto what = process::snapshot(++step);
          what.generation = place;
          words.finish(at->second, what, somewhere(), chance() % 2 == 0);
          newest[place] = step;
          begun.erase(at);
        }
        break;
      case 4:
        if (const auto at = words.newest()) {
          words.set_rollback_point(words.word(*at).sequence);
          common[place] = words.snapshot(*at).step;
        }
        break;
      case 5:
        if (all.p.s.hold(slot))
          held.insert(slot);
        break;
      case 6:
        if (!held.empty()) {
          all.p.s.release(*held.begin());
          held.erase(held.begin());
        }
        break;
      case 7:
        all.p.s.finalize(slot, all.p.s.word(slot).sequence, {chance() % 3 != 0, "full"});
        break;
      case 8: // killed at whatever it was doing; the next one opens no place yet
        all.p.s.writer_died();
        begun.clear();
        open.clear();
        break;
      case 9:
        all.p.s.readers_died();
        held.clear();
        break;
      case 10:
        open.erase(place);
        break;
      default:
        while (words.drop_surplus()) {
        }
      }
      for (const auto& w : of) {
        if (newest.count(w.place()) != 0) {
          REQUIRE(w.newest());
          // What one rank has beyond what all have may be written over.
          if (common.count(w.place()) == 0)
            REQUIRE(w.snapshot(*w.newest()).step == newest[w.place()]);
        }
        if (w.newest())
          REQUIRE(w.snapshot(*w.newest()).generation == w.place());
        if (common.count(w.place()) != 0) {
          REQUIRE(w.rollback_point());
          REQUIRE(w.snapshot(*w.rollback_point()).step == common[w.place()]);
        }
      }
      for (const auto one : held)
        REQUIRE(all.p.s.word(one).state == slot_state::ready);
    }
  }
  CHECK(gone_as.size() >= 4); // else this shows little
}
