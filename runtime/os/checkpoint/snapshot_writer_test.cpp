#include "runtime/os/checkpoint/snapshot_writer.hpp"

#include "ckpt/snapshot/torch_file.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

struct directory {
  directory() {
    std::string name = "/tmp/troupe-writer-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~directory() { std::filesystem::remove_all(path); }
  std::string path;
};

/// A training process's end of an arena.
struct process {
  process() {
    table = *os::shared_memory::create("table", sizeof(slot_table));
    for (auto& m : memory)
      m = *os::shared_memory::create("slot", 0);
    words().format();
  }
  slots words() { return {*reinterpret_cast<slot_table*>(table.data()), 2}; }
  std::vector<int> descriptors() const {
    std::vector<int> all{table.descriptor()};
    for (const auto& m : memory)
      all.push_back(m.descriptor());
    all.push_back(wake_event.descriptor());
    return all;
  }
  std::size_t save(const std::string& place, std::uint64_t step, bool requested = true) {
    auto at = words();
    const auto slot = at.begin().value();
    const std::vector<std::uint64_t> sizes{content.size()};
    const torch_file file(1, sizes);
    const auto bytes = file.layout().bytes();
    REQUIRE(memory[slot].bytes() <= bytes);
    REQUIRE(memory[slot].grow(bytes));
    auto* snapshot = memory[slot].data();
    file.write_frame(snapshot);
    snapshot[file.pickle_at()] = '.';
    std::memcpy(snapshot + file.storage_at(0), content.data(), content.size());
    slot_snapshot what;
    what.step = step;
    what.generation = 3;
    what.world_size = 1;
    what.bytes = bytes;
    slot_destination to;
    std::strcpy(to.place.data(), place.c_str());
    std::strcpy(to.directory.data(), std::to_string(step).c_str());
    std::strcpy(to.file.data(), "rank_0.pt");
    to.shards = 1;
    at.finish(slot, what, to, requested);
    wake_event.signal();
    return slot;
  }
  os::shared_memory table;
  std::array<os::shared_memory, slot_table::slots_max> memory;
  os::wake_event wake_event = *os::wake_event::create();
  const std::string content = std::string(3'000'000, 'x');
};

/// What a callback brings, for a thread that waits.
template<class T>
class box {
 public:
  void put(T value) {
    const std::lock_guard held(lock_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock held(lock_);
    REQUIRE(changed_.wait_for(held, 30s, [this] { return !values_.empty(); }));
    auto first = std::move(values_.front());
    values_.pop_front();
    return first;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

std::shared_ptr<snapshot_writer> open(const process& p,
                                      snapshot_writer::replicator replicate = {}) {
  auto opened = snapshot_writer::open({p.descriptors()}, "n0", std::move(replicate));
  REQUIRE_MESSAGE(opened, opened.error().what);
  return *opened;
}

} // namespace

TEST_CASE("what a process wants is told, written as a sealed file, and finalized") {
  const directory there;
  process p;
  box<persist_request> requested;
  const auto writer = open(p);
  writer->watch([&](const persist_request& w) { requested.put(w); });
  const auto slot = p.save(there.path, 4);
  const auto snapshot = requested.take();
  CHECK(snapshot.step == 4);
  CHECK(snapshot.made_by == generation{3});
  CHECK(snapshot.to.file == "rank_0.pt");

  box<result<ports::receipt>> written;
  writer->write(snapshot, [&](result<ports::receipt> r) { written.put(std::move(r)); });
  const auto receipt = written.take();
  REQUIRE_MESSAGE(receipt, receipt.error().what);
  std::ifstream file(there.path + "/4/rank_0.pt", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  CHECK(bytes.size() == receipt->bytes);
  CHECK(verify(bytes));

  const auto sequence = p.words().word(slot).sequence;
  const auto before = p.words().outcomes_told().load();
  writer->finalize(snapshot, {});
  while (p.words().outcomes_told().load() == before)
    REQUIRE(os::wait_while(p.words().outcomes_told(), before, 30s));
  CHECK(p.words().finalized(slot, sequence)->succeeded);
  CHECK_FALSE(p.words().word(slot).persist_requested);
}

TEST_CASE("a writer that comes later hears of what was requested before, and of nothing twice") {
  const directory there;
  process p;
  p.save(there.path, 1);
  p.save(there.path, 2, false);
  const auto writer = open(p);
  box<persist_request> requested;
  writer->watch([&](const persist_request& w) { requested.put(w); });
  CHECK(requested.take().step == 1);
  p.save(there.path, 3);
  CHECK(requested.take().step == 3);
}

TEST_CASE("of several that are requested the older is told first") {
  const directory there;
  process p;
  for (std::uint64_t step = 1; step <= 3; ++step)
    p.save(there.path, step, step == 2);
  p.save(there.path, 4); // where step 1 was, before step 2 in the table
  const auto writer = open(p);
  box<persist_request> requested;
  writer->watch([&](const persist_request& w) { requested.put(w); });
  CHECK(requested.take().step == 2);
  CHECK(requested.take().step == 4);
}

TEST_CASE("a look ends after everything that was requested before it has been told") {
  const directory there;
  process p;
  const auto writer = open(p);
  std::atomic<int> told{0};
  writer->watch([&](const persist_request&) { ++told; });
  p.save(there.path, 1);
  p.save(there.path, 2);
  box<int> looked;
  writer->look([&] { looked.put(told.load()); });
  CHECK(looked.take() == 2);
}

TEST_CASE("at a breakpoint the newest image is requested, unless it was written") {
  const directory there;
  process p;
  const auto writer = open(p);
  box<persist_request> requested;
  writer->watch([&](const persist_request& w) { requested.put(w); });
  p.save(there.path, 1, false);
  p.save(there.path, 2, false);
  writer->request_newest();
  const auto snapshot = requested.take();
  CHECK(snapshot.step == 2);
  writer->finalize(snapshot, {});
  writer->request_newest();
  p.save(there.path, 3);
  CHECK(requested.take().step == 3);
}

TEST_CASE("at a breakpoint a newer image than all ranks have is not requested") {
  const directory there;
  process p;
  const auto writer = open(p);
  box<persist_request> requested;
  writer->watch([&](const persist_request& w) { requested.put(w); });
  const auto common = p.save(there.path, 1, false);
  p.words().set_rollback_point(p.words().word(common).sequence);
  p.save(there.path, 2, false);
  writer->request_newest();
  CHECK(requested.take().step == 1);
}

TEST_CASE("what makes no sense is finalized, not written") {
  process p;
  const auto slot = p.save("relative", 1);
  const auto sequence = p.words().word(slot).sequence;
  const auto writer = open(p);
  box<int> looked;
  writer->watch([](const persist_request&) { FAIL("told"); });
  writer->look([&] { looked.put(0); });
  looked.take();
  const auto how = p.words().finalized(slot, sequence);
  REQUIRE(how);
  CHECK_FALSE(how->succeeded);
}

namespace {

/// Rank 1 of two, each at a node of its own, of whom one may be lost.
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

snapshot_writer::replicator into(box<gift>& gifts) {
  return [&gifts](const snapshot_to_copy& snapshot, ports::bytes_view memory,
                  std::function<void(result<void>)> done) {
    gifts.put(
        {snapshot, {reinterpret_cast<const char*>(memory.data), memory.size}, std::move(done)});
  };
}

void wait_for_outcome(process& p, std::uint32_t before) {
  while (p.words().outcomes_told().load() == before)
    REQUIRE(os::wait_while(p.words().outcomes_told(), before, 30s));
}

} // namespace

TEST_CASE("copies are given sealed, of the group that the process named, and finalized") {
  process p;
  box<gift> gifts;
  box<snapshot_to_copy> requested;
  const auto writer = open(p, into(gifts));
  writer->watch_copies([&](const snapshot_to_copy& w) { requested.put(w); });
  const auto kept = p.save("/nowhere", 3, false);
  p.words().set_replica_base(p.words().word(kept).sequence);
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
  writer->copy(snapshot, [&](result<void> how) { copied.put(std::move(how)); });
  writer->copy(snapshot, [&](result<void> how) { copied.put(std::move(how)); }); // after a crash
  const auto given = gifts.take();
  CHECK(verify(given.bytes));
  CHECK(p.words().word(slot).readers == 1);
  given.done({});
  CHECK(copied.take());
  CHECK(copied.take());
  CHECK(p.words().word(slot).readers == 0);

  const auto before = p.words().outcomes_told().load();
  writer->finalize_copy(snapshot, {});
  wait_for_outcome(p, before);
  CHECK(p.words().finalized(slot, snapshot.sequence, purpose::copies)->succeeded);
  CHECK_FALSE(p.words().finalized(slot, snapshot.sequence));
}

TEST_CASE("a node that gives no copies says so, and a group that cannot be is finalized") {
  process p;
  const auto writer = open(p);
  box<snapshot_to_copy> requested;
  writer->watch_copies([&](const snapshot_to_copy& w) { requested.put(w); });
  const auto slot = p.save("/nowhere", 1, false);
  const auto before = p.words().outcomes_told().load();
  auto nobody = two_nodes();
  nobody.parity = 2;
  p.words().request_copies(slot, nobody);
  p.wake_event.signal();
  wait_for_outcome(p, before);
  CHECK(p.words().finalized(slot, p.words().word(slot).sequence, purpose::copies)->why ==
        "it was not said which nodes hold its pieces");
  p.words().request_copies(p.save("/nowhere", 2, false), two_nodes());
  p.wake_event.signal();
  box<result<void>> copied;
  writer->copy(requested.take(), [&](result<void> how) { copied.put(std::move(how)); });
  CHECK(copied.take().error().what == "this node does not give copies to others");
}

TEST_CASE("an image that has changed under the writer's hands is not written") {
  const directory there;
  process p;
  const auto writer = open(p);
  box<persist_request> requested;
  writer->watch([&](const persist_request& w) { requested.put(w); });
  p.save(there.path, 1);
  auto snapshot = requested.take();
  ++snapshot.sequence;
  box<result<ports::receipt>> written;
  writer->write(snapshot, [&](result<ports::receipt> r) { written.put(std::move(r)); });
  const auto refused = written.take();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "the image of step 1 of rank 0 is another's now");
}
