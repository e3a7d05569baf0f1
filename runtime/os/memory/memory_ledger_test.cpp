#include "runtime/os/memory/memory_ledger.hpp"

#include "ckpt/limits.hpp"
#include "runtime/os/memory/commit_turn.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::os;

namespace {

constexpr std::uint64_t mib = 1u << 20, gib = 1u << 30;

/// The page, and how much room each process finds.
struct node {
  explicit node(std::uint64_t bytes) : room(bytes) {}
  memory_ledger ledger(const std::function<void()>& under_the_lock = {}) {
    auto page = shared_memory::share(memory.descriptor());
    REQUIRE(page);
    auto opened =
        memory_ledger::open(std::move(*page), [this, under_the_lock]() -> result<memory_room> {
          if (under_the_lock)
            under_the_lock();
          return memory_room{room, "as the test says"};
        });
    REQUIRE(opened);
    return std::move(*opened);
  }
  shared_memory memory = *memory_ledger::make_page();
  std::atomic<std::uint64_t> room;
};

memory_ledger::declaration of(std::size_t rank, std::uint64_t snapshot, std::uint64_t more = 0,
                              std::uint64_t backed = 0) {
  memory_ledger::declaration d;
  d.rank = rank;
  d.snapshot = snapshot;
  d.wanted = 2;
  d.more = more;
  d.backed = backed;
  return d;
}

/// Runs in a process of its own. Answers how that has ended.
int in_child(const std::function<void()>& work) {
  const auto child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST_CASE("what one process has reserved another one does not get") {
  node n(2 * gib);
  CHECK(in_child([&n] {
          auto ledger = n.ledger();
          ledger.opened(0, 0);
          ledger.opened(1, 0);
          if (!ledger.reserve(of(0, gib - 100 * mib)))
            _exit(1);
        }) == 0);
  auto ledger = n.ledger();
  CHECK(ledger.kept() == 1);
  CHECK(ledger.reserve(of(1, gib - 100 * mib, gib - 100 * mib)));
  const auto refused = ledger.reserve_replicas(0, 200 * mib);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("beside what this node's own snapshots need") !=
        std::string::npos);
  const auto line = ledger.notice();
  REQUIRE(line);
  CHECK(line->find("memory for one snapshot per rank only") == 0);
  CHECK(line->find("as the test says") != std::string::npos);
  CHECK_FALSE(ledger.notice());
  CHECK_FALSE(n.ledger().notice()); // once for the node
}

TEST_CASE("a process that is killed while it holds the lock holds up no other") {
  node n(4 * gib);
  const auto killed = in_child([&n] {
    auto ledger = n.ledger([] { ::raise(SIGKILL); });
    ledger.opened(0, 0);
    (void)ledger.reserve(of(0, gib));
  });
  REQUIRE(WIFSIGNALED(killed));
  const auto began = std::chrono::steady_clock::now();
  auto ledger = n.ledger();
  ledger.opened(0, 0); // its next life
  CHECK(ledger.reserve(of(0, gib)));
  CHECK(std::chrono::steady_clock::now() - began < 1s);
  CHECK(ledger.kept() == 2);
}

TEST_CASE("the reservation of a dead process is its next life's, and is not added to") {
  node n(4 * gib);
  for (int life = 0; life < 5; ++life)
    CHECK(in_child([&n] {
            auto ledger = n.ledger();
            ledger.opened(0, 0);
            if (!ledger.reserve(of(0, gib, 2 * gib)))
              _exit(1);
          }) == 0);
  CHECK(n.ledger().reserve_replicas(0, gib));
}

TEST_CASE("a process that stands still with the lock costs another two seconds, and an error") {
  node n(4 * gib);
  const auto child = fork();
  if (child == 0) {
    auto ledger = n.ledger([] { ::raise(SIGSTOP); });
    (void)ledger.reserve(of(0, gib));
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  const auto refused = n.ledger().reserve(of(1, gib));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("holds the lock of its memory") != std::string::npos);
  ::kill(child, SIGKILL);
  waitpid(child, &status, 0);
  CHECK(n.ledger().reserve(of(1, gib)));
}

TEST_CASE("a rank waits until another has given its surplus back, for two seconds at most") {
  node n(4 * gib);
  auto one = n.ledger(), two = n.ledger();
  one.opened(0, 0);
  two.opened(1, 0);
  const auto part = 900 * mib;
  REQUIRE(one.reserve(of(0, part, 2 * part)));
  n.room -= 2 * part;
  one.account(0, 2 * part, 0);
  SUBCASE("it does") {
    std::thread gives([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      n.room += part;
      one.account(0, part, 0);
    });
    CHECK(two.reserve(of(1, 5 * part / 2, 5 * part / 2)));
    gives.join();
  }
  SUBCASE("it does not") {
    const auto began = std::chrono::steady_clock::now();
    const auto before = one.pressed();
    CHECK_FALSE(two.reserve(of(1, 5 * part / 2, 5 * part / 2)));
    CHECK(std::chrono::steady_clock::now() - began < 2 * limits::memory_wait_within);
    CHECK(one.pressed() != before);
  }
  CHECK(one.kept() == 1);
}

TEST_CASE("memory that is no ledger is refused") {
  auto other = shared_memory::create("troupe-test", 4096);
  REQUIRE(other);
  CHECK_FALSE(memory_ledger::open(std::move(*other)));
}

TEST_CASE("one process at a time has the turn to touch memory, and a dead one has it no more") {
  const auto tried = [] { return commit_turn::wait("/tmp", 0s) ? 0 : 1; };
  {
    const auto turn = commit_turn::wait("/tmp", 10s);
    REQUIRE(turn);
    CHECK(in_child([&] { _exit(tried()); }) != 0);
  }
  CHECK(in_child([&] {
          const auto turn = commit_turn::wait("/tmp", 10s);
          _exit(turn ? 0 : 1); // and is gone
        }) == 0);
  CHECK(in_child([&] { _exit(tried()); }) == 0);
  CHECK_FALSE(commit_turn::wait("/there/is/no/such/folder", 0s));
}
