#include "tests/process/process_contract.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace troupe::testing {

namespace {

/// What a host has reported; written by its thread, read by the test.
class ends {
 public:
  ports::process_host::ended of(int name) {
    return [this, name](ports::exit_status status) {
      const std::lock_guard lock(mutex_);
      told_[name].push_back(status);
    };
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return told_.size();
  }

  std::vector<ports::exit_status> told(int name) const {
    const std::lock_guard lock(mutex_);
    const auto found = told_.find(name);
    return found == told_.end() ? std::vector<ports::exit_status>{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, std::vector<ports::exit_status>> told_;
};

/// Sweeps and answers how many were killed.
std::size_t sweep(process_world& world) {
  std::mutex mutex;
  std::vector<std::size_t> answers;
  world.host().sweep(
      {}, [](const auto&) {},
      [&mutex, &answers](const auto& what) {
        const std::lock_guard lock(mutex);
        answers.push_back(what.killed);
      });
  REQUIRE(world.until([&mutex, &answers] {
    const std::lock_guard lock(mutex);
    return !answers.empty();
  }));
  const std::lock_guard lock(mutex);
  return answers.front();
}

void end_of_one_process(process_world& world, ends& told) {
  SUBCASE("an exit status is reported as it is") {
    REQUIRE(world.host().start(world.exits_with(7), told.of(1)));
    REQUIRE(world.until([&told] { return told.count() == 1; }));
    CHECK(told.told(1).front().code() == 7);
    CHECK_FALSE(told.told(1).front().success());
  }
  SUBCASE("an exit with 0 is a success") {
    REQUIRE(world.host().start(world.exits_with(0), told.of(1)));
    REQUIRE(world.until([&told] { return told.count() == 1; }));
    CHECK(told.told(1).front().success());
  }
  SUBCASE("death by a signal is told from an exit") {
    const auto one = world.host().start(world.runs(), told.of(1));
    REQUIRE(one);
    world.host().signal(one->process, SIGTERM);
    REQUIRE(world.until([&told] { return told.count() == 1; }));
    CHECK(told.told(1).front().signalled);
    CHECK(told.told(1).front().code() == -SIGTERM);
  }
  SUBCASE("a process may refuse SIGTERM but not SIGKILL") {
    const auto one = world.host().start(world.ignores_sigterm(), told.of(1));
    REQUIRE(one);
    REQUIRE(world.until([&world] { return world.deaf(); }));
    world.host().signal(one->process, SIGTERM);
    world.host().signal(one->process, SIGKILL);
    REQUIRE(world.until([&told] { return told.count() == 1; }));
    CHECK(told.told(1).front().code() == -SIGKILL);
  }
  SUBCASE("a program that does not exist is an error that names it, and nothing ends") {
    const auto spec = world.missing();
    const auto none = world.host().start(spec, told.of(1));
    REQUIRE_FALSE(none);
    CHECK(none.error().code == errc::invalid);
    CHECK(none.error().what.find(spec.argv[0]) != std::string::npos);
    CHECK(sweep(world) == 0);
    CHECK(told.count() == 0);
  }
}

void signals_after_the_end(process_world& world, ends& told) {
  const auto gone = world.host().start(world.exits_with(0), told.of(1));
  const auto bystander = world.host().start(world.runs(), told.of(2));
  REQUIRE(gone);
  REQUIRE(bystander);
  REQUIRE(world.until([&told] { return told.count() == 1; }));
  world.host().signal(gone->process, SIGKILL);
  world.host().signal(gone->process + 1000, SIGKILL);
  CHECK(sweep(world) == 0);
  CHECK(told.told(1).size() == 1);
  CHECK(told.told(2).empty());
}

void many_processes(process_world& world, ends& told) {
  constexpr int count = 200;
  std::set<ports::process_id> ids;
  for (int i = 0; i < count; ++i) {
    const auto one =
        world.host().start(i % 2 == 0 ? world.exits_with(i) : world.runs(), told.of(i));
    REQUIRE(one);
    ids.insert(one->process);
  }
  CHECK(ids.size() == count);
  for (const auto process : ids)
    world.host().signal(process, SIGKILL);
  REQUIRE(world.until([&told] { return told.count() == count; }));
  for (int i = 0; i < count; ++i) {
    REQUIRE(told.told(i).size() == 1);
    const int code = told.told(i).front().code();
    // One that ends by itself may have been faster than the signal.
    const bool as_expected = code == -SIGKILL || (i % 2 == 0 && code == i);
    CHECK(as_expected);
  }
}

void sweeping(process_world& world, ends& told) {
  SUBCASE("what an ended process left behind is killed") {
    REQUIRE(world.host().start(world.leaves_an_orphan(), told.of(1)));
    REQUIRE(world.until([&told] { return told.count() == 1; }));
    CHECK(world.alive() == 1);
    CHECK(sweep(world) == 1);
    CHECK(world.alive() == 0);
  }
  SUBCASE("a living process is left alone") {
    REQUIRE(world.host().start(world.runs(), told.of(1)));
    CHECK(sweep(world) == 0);
    CHECK(told.count() == 0);
    CHECK(world.alive() == 1);
  }
  SUBCASE("with nothing there it answers at once") {
    CHECK(sweep(world) == 0);
  }
}

} // namespace

void check_process_contract(const process_world_maker& make) {
  // The world goes first: nothing may be reported once its host is gone.
  ends told;
  const auto world = make();
  SUBCASE("one process") {
    end_of_one_process(*world, told);
  }
  SUBCASE("a signal to a process that has ended hits no other") {
    signals_after_the_end(*world, told);
  }
  SUBCASE("200 processes at once each end once") {
    many_processes(*world, told);
  }
  SUBCASE("sweep") {
    sweeping(*world, told);
  }
}

} // namespace troupe::testing
