#include "runtime/os/checkpoint/snapshot_writer.hpp"

#include "ckpt/limits.hpp"
#include "runtime/os/checkpoint/testing/box.hpp"
#include "runtime/os/checkpoint/testing/training_memory.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <thread>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;
using os::testing::box;

namespace {

struct directory {
  directory() {
    std::string name = "/tmp/troupe-writer-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~directory() { std::filesystem::remove_all(path); }
  std::string path;
};

std::shared_ptr<snapshot_writer> open(const process& p) {
  return std::make_shared<snapshot_writer>(watch_of(p), "n0");
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
  CHECK(snapshot.id() == save_id{generation{3}, 104});
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
  wait_for_outcome(p, before);
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

// ---- steps at a place --------------------------------------------------------------------------

namespace {

/// A node that saves, and its committer.
struct saving_node {
  explicit saving_node(const std::string& to) : place(to), writer(open(memory)) {
    writer->watch([this](const persist_request& w) { requested.put(w); });
  }
  persist_request request(std::uint64_t step) {
    memory.save(place, step);
    return requested.take();
  }
  commit_order written(const persist_request& snapshot) {
    box<result<ports::receipt>> answer;
    writer->write(snapshot, [&](result<ports::receipt> r) { answer.put(std::move(r)); });
    const auto receipt = answer.take();
    REQUIRE_MESSAGE(receipt, receipt.error().what);
    commit_order order;
    order.to = snapshot.to;
    order.says.step = snapshot.step;
    order.says.made_by = snapshot.made_by;
    order.says.save = snapshot.save;
    order.says.shards = {{snapshot.to.file, *receipt, "n0"}};
    writer->finalize(snapshot, {});
    return order;
  }
  result<completed> commit(const commit_order& order) {
    box<result<completed>> answer;
    writer->commit(order, [&](result<completed> how) { answer.put(std::move(how)); });
    return answer.take();
  }
  void retain(const commit_order& order) {
    writer->retain({order.to, {order.says.id(), order.says.id()}});
  }
  bool has(const std::string& file) const { return std::filesystem::exists(place + "/" + file); }

  std::string place;
  process memory;
  box<persist_request> requested;
  std::shared_ptr<snapshot_writer> writer;
};

} // namespace

TEST_CASE("a step is completed while the next one's write takes its time") {
  const directory there;
  saving_node node(there.path);
  const auto order = node.written(node.request(1));
  const auto next = node.request(2);
  // The thread that writes is held up, as by a slow disk.
  std::promise<void> held, let_go;
  node.writer->write(next, [&](const result<ports::receipt>&) {
    held.set_value();
    let_go.get_future().wait();
  });
  held.get_future().wait();
  const auto done = node.commit(order);
  REQUIRE_MESSAGE(done, done.error().what);
  CHECK(node.has("1/troupe-manifest.json"));
  let_go.set_value();
}

TEST_CASE("what need not be kept stays until a step is complete at all nodes") {
  const directory there;
  saving_node node(there.path);
  REQUIRE(node.commit(node.written(node.request(1))));
  const auto order = node.written(node.request(2));
  REQUIRE(node.commit(order));
  CHECK(node.has("1/troupe-manifest.json"));
  node.retain(order);
  // In its turn: what is asked for later may be done before.
  while (node.has("1"))
    std::this_thread::yield();
  CHECK(node.has("2/rank_0.pt"));
}

TEST_CASE("what need not be kept is removed when there is nothing else to do, and by the end") {
  const directory there;
  {
    saving_node node(there.path);
    REQUIRE(node.commit(node.written(node.request(1))));
    const auto order = node.written(node.request(2));
    // The thread that completes steps is held up, as by a slow disk.
    std::promise<void> held, let_go;
    node.writer->commit(order, [&](const result<completed>& how) {
      CHECK(how);
      held.set_value();
      let_go.get_future().wait();
    });
    held.get_future().wait();
    node.retain(order);
    box<bool> there_before;
    node.writer->commit(order, [&](const result<completed>&) { there_before.put(node.has("1")); });
    // Both are in that thread's queue by now.
    std::promise<void> looked;
    node.writer->look([&] { looked.set_value(); });
    looked.get_future().wait();
    let_go.set_value();
    CHECK(there_before.take());
  }
  CHECK_FALSE(std::filesystem::exists(there.path + "/1"));
  CHECK(std::filesystem::exists(there.path + "/2/rank_0.pt"));
}

TEST_CASE("a directory of another program is refused to its process, and stays") {
  const directory there;
  std::filesystem::create_directory(there.path + "/7");
  std::ofstream(there.path + "/7/rank_0.pt") << "DLRover's";
  saving_node node(there.path);
  box<result<ports::receipt>> answer;
  node.writer->write(node.request(7), [&](result<ports::receipt> r) { answer.put(std::move(r)); });
  const auto refused = answer.take();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find("it holds '7/rank_0.pt'") != std::string::npos);
  CHECK(std::filesystem::file_size(there.path + "/7/rank_0.pt") == 9);
}

TEST_CASE("as many places as there may be are written at once; one that is idle makes room") {
  const directory there;
  process p;
  const auto writer = open(p);
  box<persist_request> requested;
  writer->watch([&](const persist_request& w) { requested.put(w); });
  p.save(there.path + "/a", 1);
  auto snapshot = requested.take();
  std::promise<void> let_go;
  const auto held = let_go.get_future().share();
  box<result<ports::receipt>> begun;
  const auto write_to = [&](std::size_t number) {
    snapshot.to.place = there.path + "/" + std::to_string(number);
    writer->write(snapshot, [&begun, held](result<ports::receipt> r) {
      const bool waits = r.has_value();
      begun.put(std::move(r));
      if (waits)
        held.wait();
    });
    return begun.take();
  };
  for (std::size_t i = 0; i < limits::checkpoint_places_max; ++i)
    REQUIRE(write_to(i));
  const auto refused = write_to(limits::checkpoint_places_max);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::overloaded);
  let_go.set_value();
  // The threads need a moment to be idle.
  for (auto again = write_to(99); !again; again = write_to(99))
    CHECK(again.error().code == errc::overloaded);
}
