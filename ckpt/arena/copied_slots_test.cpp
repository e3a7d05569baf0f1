#include "ckpt/arena/testing/process.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <set>

using namespace troupe::ckpt;
using testing::process;
using testing::somewhere;

namespace {

slot_group pair() {
  slot_group by;
  by.members = 2;
  by.parity = 1;
  by.me = 1;
  by.ranks = {0, 1};
  by.within_ms = 1000;
  return by;
}

constexpr auto copies = purpose::copies;

} // namespace

TEST_CASE("a word keeps that copies are requested, apart from all else") {
  const slot_word only_copied{slot_state::ready, false, false, 0, 0, false, true};
  CHECK(unpack(pack(only_copied)).copied);
  CHECK_FALSE(unpack(pack(only_copied)).persist_requested);
  const slot_word all_but{slot_state::ready, true, true, slot_word::readers_max, 77, true, false};
  CHECK_FALSE(unpack(pack(all_but)).copied);
  CHECK(unpack(pack(all_but)).sequence == 77);
  CHECK(unpack(pack(all_but)).readers == slot_word::readers_max);
}

TEST_CASE("copies can be requested of what is being written, and are when it is whole") {
  process p;
  CHECK_FALSE(p.s.request_copies(0, pair())); // there is nothing
  const auto slot = p.s.begin().value();
  REQUIRE(p.s.request_copies(slot, pair()));
  p.s.finish(slot, process::snapshot(1));
  CHECK(p.s.word(slot).copied);
  CHECK_FALSE(p.s.word(slot).persist_requested);
  CHECK(p.s.group(slot).members == 2);
  CHECK(p.s.group(slot).me == 1);
  const auto whole = p.save(2);
  CHECK_FALSE(p.s.word(whole).copied);
  CHECK(p.s.request_copies(whole, pair()));
}

TEST_CASE("what is given up or left half by a process that died is not copied") {
  process p;
  const auto first = p.s.begin().value();
  REQUIRE(p.s.request_copies(first, pair()));
  p.s.abandon(first);
  CHECK_FALSE(p.s.word(first).copied);
  const auto second = p.s.begin().value();
  REQUIRE(p.s.request_copies(second, pair()));
  p.s.writer_died();
  CHECK_FALSE(p.s.word(second).copied);
  CHECK_FALSE(p.s.word(p.save(1)).copied);
}

TEST_CASE(
    "an image of which copies are made stays through every death, and once that is finalized until "
    "copies of another are requested") {
  process p;
  const auto first = p.save(1);
  const auto sequence = p.s.word(first).sequence;
  REQUIRE(p.s.request_copies(first, pair()));
  for (std::uint64_t step = 2; step < 12; ++step) {
    CHECK(p.save(step) != first);
    p.s.writer_died();
    p.s.readers_died();
    while (p.s.drop_surplus()) {
    }
    CHECK(p.s.snapshot(first).step == 1);
    CHECK(p.s.word(first).state == slot_state::ready);
  }
  CHECK_FALSE(p.s.finalized(first, sequence, copies));
  p.s.finalize(first, sequence, {true, ""}, copies);
  REQUIRE(p.s.finalized(first, sequence, copies));
  CHECK(p.s.finalized(first, sequence, copies)->succeeded);
  CHECK_FALSE(p.s.word(first).copied);
  CHECK(p.save(12) != first);
  CHECK_FALSE(p.s.drop_surplus());
  REQUIRE(p.s.request_copies(p.save(13), pair()));
  CHECK(p.s.drop_surplus() == first);
}

TEST_CASE("disk and copies are finalized apart") {
  process p;
  const auto slot = p.s.begin().value();
  p.s.finish(slot, process::snapshot(1), somewhere(), true);
  const auto sequence = p.s.word(slot).sequence;
  REQUIRE(p.s.request_copies(slot, pair()));
  p.s.finalize(slot, sequence, {false, "rank 0 has gone"}, copies);
  CHECK(p.s.finalized(slot, sequence, copies)->why == "rank 0 has gone");
  CHECK_FALSE(p.s.finalized(slot, sequence));
  CHECK(p.s.word(slot).persist_requested);
  p.s.finalize(slot, sequence, {true, ""});
  CHECK(p.s.finalized(slot, sequence)->succeeded);
  CHECK_FALSE(p.s.finalized(slot, sequence, copies)->succeeded);
}

TEST_CASE("copies that are being made keep the group that was said; when they are finalized others "
          "may be requested, and nothing is known of these") {
  process p;
  const auto slot = p.save(1);
  const auto sequence = p.s.word(slot).sequence;
  REQUIRE(p.s.request_copies(slot, pair()));
  auto other = pair();
  other.me = 0;
  CHECK_FALSE(p.s.request_copies(slot, other));
  CHECK(p.s.group(slot).me == 1);
  p.s.finalize(slot, sequence, {true, ""}, copies);
  REQUIRE(p.s.request_copies(slot, other));
  CHECK(p.s.group(slot).me == 0);
  CHECK_FALSE(p.s.finalized(slot, sequence, copies));
}

TEST_CASE("what is finalized late is not what comes to be written in the same slot") {
  process p;
  const auto slot = p.save(1);
  const auto sequence = p.s.word(slot).sequence;
  REQUIRE(p.s.request_copies(slot, pair()));
  p.s.finalize(slot, sequence, {true, ""}, copies);
  REQUIRE(p.s.request_copies(p.save(2), pair()));
  REQUIRE(p.s.begin() == slot);
  REQUIRE(p.s.request_copies(slot, pair()));
  p.s.finalize(slot, sequence, {false, "late"}, copies);
  CHECK(p.s.word(slot).copied);
  p.s.finish(slot, process::snapshot(3));
  CHECK(p.s.word(slot).copied);
}

TEST_CASE("the image that stays for others does until another one stays") {
  process p;
  const auto first = p.save(1);
  const auto base = p.s.word(first).sequence;
  CHECK_FALSE(p.s.replica_base());
  p.s.set_replica_base(base);
  for (std::uint64_t step = 2; step < 12; ++step) {
    CHECK(p.save(step) != first);
    p.s.writer_died();
    while (p.s.drop_surplus()) {
    }
    CHECK(p.s.replica_base() == first);
  }
  const auto newest = p.s.newest().value();
  p.s.set_replica_base(p.s.word(newest).sequence);
  CHECK(p.s.replica_base() == newest);
  p.save(12);
  CHECK(p.s.word(newest).state == slot_state::ready);
  p.s.set_replica_base(std::nullopt);
  CHECK_FALSE(p.s.replica_base());
  std::set<std::size_t> used;
  for (std::uint64_t step = 13; step < 17; ++step)
    used.insert(p.save(step));
  CHECK(used.count(newest) == 1);
}

TEST_CASE("no image stays for others in memory that was made anew") {
  process p;
  p.s.set_replica_base(p.s.word(p.save(1)).sequence);
  p.s.format();
  p.save(1);
  CHECK_FALSE(p.s.replica_base());
}

TEST_CASE("what stays and what is copied come on top of the images that there can be") {
  process p;
  p.s.set_replica_base(p.s.word(p.save(1)).sequence);
  REQUIRE(p.s.request_copies(p.save(2), pair()));
  for (std::uint64_t step = 3; step < 3 + slots::snapshots_max; ++step)
    REQUIRE(p.s.hold(p.save(step)));
  CHECK_FALSE(p.s.begin());
  p.s.set_replica_base(std::nullopt);
  CHECK(p.s.begin() == 0);
}

TEST_CASE("what was mapped counts as no image, copied or not") {
  process p;
  const auto mapped = p.save(1);
  REQUIRE(p.s.request_copies(mapped, pair()));
  p.s.set_replica_base(p.s.word(mapped).sequence);
  REQUIRE(p.set_mapped(mapped));
  for (std::uint64_t step = 2; step < 2 + slots::snapshots_max; ++step)
    REQUIRE(p.s.hold(p.save(step)));
  CHECK_FALSE(p.s.begin());
}

TEST_CASE("in memory for others' images the oldest that may go comes first, then an empty slot") {
  process p;
  const auto put = [&p](std::uint64_t step,
                        const std::function<bool(const slot_snapshot&)>& may_go) {
    const auto slot =
        p.s.begin_where([&](std::size_t which) { return may_go(p.s.snapshot(which)); });
    if (slot)
      p.s.finish(*slot, process::snapshot(step));
    return slot;
  };
  const auto none = [](const slot_snapshot&) { return false; };
  REQUIRE(put(77, none) == 0);
  REQUIRE(put(0, [](const slot_snapshot& i) { return i.step == 77; }) == 0);
  for (std::uint64_t step = 1; step < slots::count(); ++step)
    REQUIRE(put(step, none) == step);
  const auto more = slots::count();
  CHECK_FALSE(put(more, none));
  CHECK(put(more, [](const slot_snapshot& i) { return i.step >= 3; }) == 3);
  CHECK(put(more + 1, [](const slot_snapshot& i) { return i.step >= 3; }) == 4);
  // The newest may go as well, and one that is read may not.
  CHECK(put(more + 2, [&](const slot_snapshot& i) { return i.step == more + 1; }) == 4);
  REQUIRE(p.s.hold(0));
  CHECK_FALSE(put(more + 3, [](const slot_snapshot& i) { return i.step == 0; }));
  p.s.release(0);
  const auto begun =
      p.s.begin_where([&p](std::size_t which) { return p.s.snapshot(which).step == 0; });
  REQUIRE(begun == 0);
  CHECK_FALSE(
      put(more + 4, [](const slot_snapshot& i) { return i.step == 0; })); // it is being written
  p.s.writer_died();
  CHECK(put(more + 4, none) == 0);
}
