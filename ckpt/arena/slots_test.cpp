#include "ckpt/arena/testing/process.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

using namespace troupe::ckpt;
using testing::process;
using testing::somewhere;

TEST_CASE("a word keeps what it is made of") {
  for (const auto state : {slot_state::empty, slot_state::writing, slot_state::ready})
    for (const std::uint64_t sequence :
         {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 48) - 1}) {
      const slot_word word{state, true, false, slot_word::readers_max, sequence, true};
      const auto again = unpack(pack(word));
      CHECK(again.state == state);
      CHECK(again.sealed);
      CHECK_FALSE(again.mapped);
      CHECK(again.persist_requested);
      CHECK(again.readers == slot_word::readers_max);
      CHECK(again.sequence == sequence);
    }
  CHECK(unpack(3).state == slot_state::writing); // that is never written: it is no snapshot
}

TEST_CASE("memory that was never formatted is no table") {
  slot_table table{};
  slots s(table, 2);
  CHECK_FALSE(s.formatted());
  s.format();
  CHECK(s.formatted());
  CHECK_FALSE(s.newest());
}

TEST_CASE("saves take turns, and the newest whole image is never written to") {
  process p;
  const auto first = p.save(1);
  const auto second = p.save(2);
  CHECK(first != second);
  CHECK(p.save(3) == first);
  CHECK(p.newest_step() == 3);
  const auto begun = p.s.begin();
  REQUIRE(begun);
  CHECK(*begun == second);
  CHECK(p.newest_step() == 3);
}

TEST_CASE("a process that dies while it saves leaves the image before") {
  process p;
  p.save(1);
  p.save(2);
  const auto begun = p.s.begin();
  REQUIRE(begun);
  p.s.writer_died();
  CHECK(p.s.word(*begun).state == slot_state::empty);
  CHECK(p.newest_step() == 2);
  p.save(3);
  CHECK(p.newest_step() == 3);
}

TEST_CASE("a save that is given up leaves the image before, and its slot comes next") {
  process p;
  p.save(1);
  const auto begun = p.s.begin();
  REQUIRE(begun);
  p.s.abandon(*begun);
  CHECK(p.newest_step() == 1);
  CHECK(p.s.begin() == begun);
}

TEST_CASE("an image that is being written out is kept, and so is the newest: there is one more "
          "meanwhile") {
  process p;
  const auto on_disk = p.save(1);
  REQUIRE(p.s.hold(on_disk));
  for (std::uint64_t step = 2; step < 10; ++step)
    CHECK(p.save(step) != on_disk);
  CHECK(p.s.snapshot(on_disk).step == 1);
  CHECK(p.s.word(3).state == slot_state::empty); // three did
  p.s.release(on_disk);
  CHECK(p.s.begin() == on_disk);
}

TEST_CASE("when all images that there can be are being read, no save can begin") {
  process p;
  for (std::uint64_t step = 1; step <= slots::snapshots_max; ++step)
    REQUIRE(p.s.hold(p.save(step)));
  CHECK_FALSE(p.s.begin());
  CHECK(p.newest_step() == slots::snapshots_max);
  p.s.release(2);
  CHECK(p.s.begin() == 2);
}

TEST_CASE("with one image to be kept a save overwrites it") {
  process p(1);
  CHECK(p.save(1) == 0);
  CHECK(p.s.begin() == 0);
  CHECK_FALSE(p.s.newest());
  p.s.finish(0, process::snapshot(2));
  CHECK(p.newest_step() == 2);
}

TEST_CASE("what was restored from is not written to until the process has died") {
  process p;
  p.save(1);
  const auto mapped = p.save(2);
  REQUIRE(p.set_mapped(mapped));
  for (std::uint64_t step = 3; step < 10; ++step)
    CHECK(p.save(step) != mapped);
  CHECK(p.s.snapshot(mapped).step == 2);

  p.s.writer_died(); // and with it its mapping
  CHECK(p.s.drop_surplus() == mapped);
  CHECK(p.s.word(mapped).state == slot_state::empty);
  CHECK_FALSE(p.s.drop_surplus());
  CHECK(p.newest_step() == 9);
}

TEST_CASE("a process that restores again and again and releases nothing runs out of slots") {
  process p;
  p.save(1);
  for (std::uint64_t step = 2; step <= slots::count(); ++step) {
    REQUIRE(p.set_mapped(p.s.newest().value()));
    p.save(step);
  }
  REQUIRE(p.set_mapped(p.s.newest().value()));
  CHECK_FALSE(p.s.begin());
}

TEST_CASE("what is released is written to again, and is the image that it was until then") {
  process p;
  p.save(1);
  const auto mapped = p.save(2);
  REQUIRE(p.set_mapped(mapped));
  REQUIRE(p.set_mapped(mapped)); // to another process
  p.save(3);
  CHECK(p.save(4) != mapped);
  p.s.clear_mapped(mapped);
  CHECK(p.s.word(mapped).state == slot_state::ready);
  CHECK(p.s.snapshot(mapped).step == 2);
  CHECK(p.save(5) == mapped);
  CHECK(p.newest_step() == 5);
}

TEST_CASE("restoring again and again takes no more slots than are mapped at once") {
  process p;
  p.save(1);
  for (std::uint64_t step = 2; step < 4 * slots::count(); ++step) {
    const auto mapped = p.s.newest().value();
    REQUIRE(p.set_mapped(mapped));
    CHECK(p.save(step) != mapped);
    p.s.clear_mapped(mapped);
  }
  CHECK(p.s.word(3).state == slot_state::empty); // three did
}

TEST_CASE("a release changes nothing else of a slot") {
  process p;
  const auto slot = p.save(1);
  p.s.finish(p.s.begin().value(), process::snapshot(2), somewhere(), true);
  const auto requested = p.s.newest().value();
  REQUIRE(p.s.hold(requested));
  p.s.mark_sealed(requested);
  for (const auto mapped : {slot, requested}) {
    const auto before = pack(p.s.word(mapped));
    REQUIRE(p.set_mapped(mapped));
    CHECK(pack(p.s.word(mapped)) != before);
    p.s.clear_mapped(mapped);
    CHECK(pack(p.s.word(mapped)) == before);
  }
}

TEST_CASE("an image that another has replaced cannot be mapped") {
  process p;
  const auto slot = p.save(1);
  const auto sequence = p.s.word(slot).sequence;
  p.save(2);
  REQUIRE(p.save(3) == slot);
  CHECK_FALSE(p.s.set_mapped(slot, sequence));
  CHECK_FALSE(p.s.word(slot).mapped);
}

TEST_CASE("only whole images can be held or mapped") {
  process p;
  CHECK_FALSE(p.s.hold(0));
  CHECK_FALSE(p.set_mapped(0));
  const auto begun = p.s.begin();
  CHECK_FALSE(p.s.hold(*begun));
  CHECK_FALSE(p.set_mapped(*begun));
  CHECK_FALSE(p.s.word(*begun).mapped);
}

TEST_CASE("a seal lasts until the slot is written again") {
  process p;
  const auto slot = p.save(1);
  REQUIRE(p.s.hold(slot));
  p.s.mark_sealed(slot);
  p.s.release(slot);
  CHECK(p.s.word(slot).sealed);
  p.save(2);
  CHECK(p.save(3) == slot);
  CHECK_FALSE(p.s.word(slot).sealed);
}

TEST_CASE("a supervisor that died holds nothing") {
  process p;
  const auto slot = p.save(1);
  REQUIRE(p.s.hold(slot));
  REQUIRE(p.s.hold(slot));
  p.save(2);
  p.s.readers_died();
  CHECK(p.s.begin() == slot);
}

TEST_CASE(
    "whatever both sides do, and whichever dies: once there is an image, one is left, never an "
    "older one") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 chance(seed);
    process p(2 + seed % 3);
    std::uint64_t step = 0, newest = 0;
    std::vector<std::size_t> begun; // one at most
    std::multiset<std::size_t> held;
    for (int i = 0; i < 200; ++i) {
      const auto slot = chance() % slots::count();
      switch (chance() % 8) {
      case 0:
      case 1:
        if (begun.empty())
          if (const auto next = p.s.begin())
            begun = {*next};
        break;
      case 2:
      case 3:
        for (const auto b : begun)
          p.s.finish(b, process::snapshot(newest = ++step));
        begun.clear();
        break;
      case 4:
        if (p.s.hold(slot))
          held.insert(slot);
        break;
      case 5:
        if (!held.empty()) {
          p.s.release(*held.begin());
          held.erase(held.begin());
        }
        break;
      case 6:
        p.s.writer_died();
        begun.clear();
        break;
      default:
        p.s.readers_died();
        held.clear();
      }
      if (newest != 0)
        REQUIRE(p.newest_step() == newest);
      for (const auto h : held)
        REQUIRE(p.s.word(h).state == slot_state::ready);
    }
  }
}

// ---- requested
// --------------------------------------------------------------------------------------

TEST_CASE("an image that is requested stays until it is finalized, whichever process dies") {
  process p;
  const auto first = p.s.begin().value();
  p.s.finish(first, process::snapshot(1), somewhere(), true);
  const auto sequence = p.s.word(first).sequence;
  for (std::uint64_t step = 2; step < 10; ++step) {
    p.save(step);
    p.s.writer_died();
    p.s.readers_died();
    CHECK(p.s.snapshot(first).step == 1);
    CHECK(p.s.word(first).persist_requested);
  }
  CHECK_FALSE(p.s.finalized(first, sequence));
  p.s.finalize(first, sequence, {false, "the disk is full"});
  REQUIRE(p.s.finalized(first, sequence));
  CHECK_FALSE(p.s.finalized(first, sequence)->succeeded);
  CHECK(p.s.finalized(first, sequence)->why == "the disk is full");
  std::set<std::size_t> used;
  for (std::uint64_t step = 10; step < 13; ++step)
    used.insert(p.save(step));
  CHECK(used.count(first) == 1);
}

TEST_CASE("only a whole image that has somewhere to go can be requested") {
  process p;
  const auto homeless = p.save(1);
  CHECK_FALSE(p.s.request_persist(homeless));
  const auto slot = p.s.begin().value();
  CHECK_FALSE(p.s.request_persist(slot));
  p.s.finish(slot, process::snapshot(2), somewhere());
  CHECK(p.s.request_persist(slot));
}

TEST_CASE("the newest image that all ranks have stays, not what one of them has beyond it") {
  process p;
  const auto common = p.save(1);
  p.s.set_rollback_point(p.s.word(common).sequence);
  for (std::uint64_t step = 2; step < 6; ++step) {
    CHECK(p.save(step) != common);
    p.s.writer_died();
    while (p.s.drop_surplus()) {
    }
    CHECK(p.s.rollback_point() == common);
  }
  const auto next = p.save(6);
  p.s.set_rollback_point(p.s.word(next).sequence);
  CHECK(p.save(7) != next);
  CHECK(p.save(8) != next);
  CHECK(p.s.snapshot(next).step == 6);
}

TEST_CASE("what is finalized late is not another image's outcome") {
  process p;
  const auto slot = p.s.begin().value();
  p.s.finish(slot, process::snapshot(1), somewhere(), true);
  const auto sequence = p.s.word(slot).sequence;
  p.s.finalize(slot, sequence, {true, ""});
  const auto told = p.s.outcomes_told().load();
  p.s.finalize(slot, sequence, {false, "again"});
  CHECK(p.s.finalized(slot, sequence)->succeeded);
  CHECK(p.s.outcomes_told().load() == told);
}

TEST_CASE("an empty slot that has memory comes before one that has none") {
  slot_table table{};
  slots words(table, 1);
  words.format();
  CHECK(words.begin(slot_set("00000110")) == 1);
  words.abandon(1);
  CHECK(words.begin(slot_set("00000100")) == 2);
  words.abandon(2);
  CHECK(words.begin() == 0);
}

TEST_CASE("what was begun and is taken back is the snapshot that it was") {
  process p(1);
  const auto slot = p.save(1);
  REQUIRE(p.s.hold(slot));
  p.s.mark_sealed(slot);
  p.s.release(slot);
  const auto before = p.s.word(slot);
  REQUIRE(p.s.begin() == slot);
  CHECK_FALSE(p.s.newest());
  p.s.take_back(slot);
  CHECK(pack(p.s.word(slot)) == pack(before));
  CHECK(p.newest_step() == 1);
  process q;
  const auto empty = q.s.begin();
  REQUIRE(empty);
  q.s.take_back(*empty);
  CHECK(q.s.word(*empty).state == slot_state::empty);
}
