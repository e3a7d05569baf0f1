#include "runtime/ports/testing/memory_journal.hpp"

#include "tests/journal/journal_contract.hpp"

#include <doctest/doctest.h>

#include <deque>

using namespace troupe;
using ports::testing::memory_disk;
using ports::testing::memory_journal;

namespace {

/// Calls back when time passes, one call after the other.
class memory_world final : public testing::journal_world {
 public:
  result<std::unique_ptr<ports::journal_store>> open() override {
    return memory_journal::open(
        disk, [this](std::function<void()> call) { calls_.push_back(std::move(call)); });
  }
  bool until(const std::function<bool()>& holds) override {
    while (!holds() && !calls_.empty()) {
      const auto call = std::move(calls_.front());
      calls_.pop_front();
      call();
    }
    return holds();
  }

  memory_disk disk;

 private:
  std::deque<std::function<void()>> calls_;
};

} // namespace

TEST_CASE("the journal in memory keeps the promises of a journal") {
  testing::check_journal_contract([] { return std::make_unique<memory_world>(); });
}

TEST_CASE("a fault of the simulated disk refuses appends until it is taken away") {
  memory_world world;
  const auto store = world.open();
  world.disk.fault = error{errc::unavailable, "full"};
  CHECK(append(world, **store, testing::numbered_record(1)).error().what == "full");
  world.disk.fault.reset();
  CHECK(append(world, **store, testing::numbered_record(2)) == 1u);
}

TEST_CASE("a damaged record on the simulated disk is an error that names it") {
  memory_world world;
  const auto store = world.open();
  REQUIRE(append(world, **store, testing::numbered_record(1)));
  REQUIRE(append(world, **store, testing::numbered_record(2)));
  world.disk.records[1].resize(16);
  const auto all = read_all(world, **store);
  REQUIRE_FALSE(all);
  CHECK(all.error().what.find("record 2") != std::string::npos);
}
