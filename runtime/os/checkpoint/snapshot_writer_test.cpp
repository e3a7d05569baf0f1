#include "runtime/os/checkpoint/snapshot_writer.hpp"

#include "runtime/os/checkpoint/testing/training_memory.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

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
