#include "runtime/os/copies/snapshot_copier.hpp"

#include "ckpt/snapshot/archive.hpp"
#include "runtime/os/checkpoint/testing/box.hpp"
#include "runtime/os/checkpoint/testing/training_memory.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;
using os::testing::box;

namespace {

/// Rank 1 of two, each at a node of its own, of which one may be lost.
slot_group two_nodes() {
  slot_group by;
  by.members = 2;
  by.parity = by.me = 1;
  by.ranks = {0, 1};
  std::strcpy(by.addresses[0].data(), "a:1");
  std::strcpy(by.addresses[1].data(), "b:1");
  by.within_ms = 5'000;
  return by;
}

struct gift {
  snapshot_to_copy snapshot;
  std::string bytes;
  std::function<void(result<void>)> done;
};

snapshot_copier::giver into(box<gift>& gifts) {
  return [&gifts](const snapshot_to_copy& snapshot, ports::bytes_view memory,
                  std::function<void(result<void>)> done) {
    gifts.put(
        {snapshot, {reinterpret_cast<const char*>(memory.data), memory.size}, std::move(done)});
  };
}

} // namespace

TEST_CASE("copies are given sealed, of the group that the process named, and finalized") {
  process p;
  box<gift> gifts;
  box<snapshot_to_copy> requested;
  snapshot_copier copier(watch_of(p), into(gifts));
  copier.watch([&](const snapshot_to_copy& w) { requested.put(w); });
  const auto base = p.save("/nowhere", 3, false);
  p.words().set_replica_base(p.words().word(base).sequence);
  const auto slot = p.save("/nowhere", 4, false);
  REQUIRE(p.words().request_copies(slot, two_nodes()));
  p.wake_event.signal();
  const auto snapshot = requested.take();
  CHECK(snapshot.step == 4);
  CHECK(snapshot.by.members.size() == 2);
  CHECK(snapshot.by.members[0].address == "a:1");
  CHECK(snapshot.by.me == 1);
  CHECK(snapshot.within == 5s);
  CHECK(snapshot.whole->step == 3);

  box<result<void>> copied;
  copier.copy(snapshot, [&](result<void> how) { copied.put(std::move(how)); });
  copier.copy(snapshot, [&](result<void> how) { copied.put(std::move(how)); }); // after a crash
  const auto given = gifts.take();
  CHECK(verify(given.bytes));
  CHECK(p.words().word(slot).readers == 1);
  given.done({});
  CHECK(copied.take());
  CHECK(copied.take());
  CHECK(p.words().word(slot).readers == 0);

  const auto before = p.words().outcomes_told().load();
  copier.finalize(snapshot, {});
  wait_for_outcome(p, before);
  CHECK(p.words().finalized(slot, snapshot.sequence, purpose::copies)->succeeded);
  CHECK_FALSE(p.words().finalized(slot, snapshot.sequence));
}

TEST_CASE("a node that gives no copies says so, and a group that cannot be is finalized") {
  process p;
  snapshot_copier copier(watch_of(p));
  box<snapshot_to_copy> requested;
  copier.watch([&](const snapshot_to_copy& w) { requested.put(w); });
  const auto slot = p.save("/nowhere", 1, false);
  const auto before = p.words().outcomes_told().load();
  auto impossible = two_nodes();
  impossible.parity = 2;
  p.words().request_copies(slot, impossible);
  p.wake_event.signal();
  wait_for_outcome(p, before);
  CHECK(p.words().finalized(slot, p.words().word(slot).sequence, purpose::copies)->why ==
        "it was not said which nodes hold its pieces");
  p.words().request_copies(p.save("/nowhere", 2, false), two_nodes());
  p.wake_event.signal();
  box<result<void>> copied;
  copier.copy(requested.take(), [&](result<void> how) { copied.put(std::move(how)); });
  CHECK(copied.take().error().what == "this node does not give copies to others");
}

TEST_CASE("what a source reads stays when the copier goes first, and its answer finds nothing") {
  process p;
  box<gift> gifts;
  std::size_t slot = 0;
  auto memory = watch_of(p);
  std::function<void(result<void>)> done;
  std::weak_ptr<snapshot_watch> watch = memory;
  {
    snapshot_copier copier(std::exchange(memory, nullptr), into(gifts));
    box<snapshot_to_copy> requested;
    copier.watch([&](const snapshot_to_copy& w) { requested.put(w); });
    slot = p.save("/nowhere", 1, false);
    REQUIRE(p.words().request_copies(slot, two_nodes()));
    p.wake_event.signal();
    copier.copy(requested.take(), [](const result<void>&) { FAIL("the copier is gone"); });
    done = gifts.take().done;
  }
  CHECK(p.words().word(slot).readers == 1);
  done({});
  CHECK(p.words().word(slot).readers == 0);
  done = nullptr;
  CHECK(watch.expired());
}

TEST_CASE("a snapshot that is to be written and copied is sealed once, and told of to both") {
  process p;
  const auto memory = watch_of(p);
  box<gift> gifts;
  snapshot_copier copier(memory, into(gifts));
  box<snapshot_to_copy> requested;
  copier.watch([&](const snapshot_to_copy& w) { requested.put(w); });
  box<std::uint64_t> seen;
  memory->look_for(purpose::disk, [&](const slots& words, const snapshot_here& snapshot) {
    if (words.word(snapshot.slot).persist_requested)
      seen.put(snapshot.step);
  });
  const auto slot = p.save("/nowhere", 7);
  REQUIRE(p.words().request_copies(slot, two_nodes()));
  p.wake_event.signal();
  CHECK(seen.take() == 7);
  copier.copy(requested.take(), [](const result<void>&) {});
  const auto given = gifts.take();
  CHECK(p.words().word(slot).sealed);
  const auto again = memory->sealed(given.snapshot);
  REQUIRE(again);
  CHECK(verify({again->data(), again->bytes()}));
  given.done({});
  memory->leave(purpose::disk);
}
