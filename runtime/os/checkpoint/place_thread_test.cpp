#include "runtime/os/checkpoint/place_thread.hpp"

#include "runtime/os/checkpoint/testing/box.hpp"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

using namespace troupe;
using ckpt::place_writer;
using os::place_thread;
using os::testing::box;

namespace {

/// A disk that hangs until it is let go.
struct hanging {
  std::promise<void> begun, let_go;
  place_thread::work work() {
    return [this](place_writer&) {
      begun.set_value();
      let_go.get_future().wait();
    };
  }
  void wait_until_begun() { begun.get_future().wait(); }
};

place_thread::work tells(box<std::string>& told, std::string what) {
  return [&told, what = std::move(what)](place_writer&) { told.put(what); };
}

} // namespace

TEST_CASE("work is done in the order it was asked for, and what may come later after all else") {
  place_thread thread("/nowhere", "n0", std::make_shared<os::saved_again_by_threads>());
  hanging disk;
  box<std::string> told;
  thread.ask(disk.work());
  disk.wait_until_begun();
  thread.ask_later(tells(told, "later 1"));
  thread.ask(tells(told, "first"));
  thread.ask_later(tells(told, "later 2"));
  thread.ask(tells(told, "second"));
  CHECK_FALSE(thread.idle());
  disk.let_go.set_value();
  for (const char* next : {"first", "second", "later 1", "later 2"})
    CHECK(told.take() == next);
}

TEST_CASE("a thread is idle when nothing is under way or asked for") {
  place_thread thread("/nowhere", "n0", std::make_shared<os::saved_again_by_threads>());
  CHECK(thread.idle());
  hanging disk;
  thread.ask(disk.work());
  disk.wait_until_begun();
  CHECK_FALSE(thread.idle()); // under way, and nothing waits
  disk.let_go.set_value();
  box<std::string> told;
  thread.ask(tells(told, "end"));
  told.take();
  while (!thread.idle())
    std::this_thread::yield();
}

TEST_CASE("a place whose disk hangs holds no other place up") {
  const auto saved = std::make_shared<os::saved_again_by_threads>();
  place_thread slow("/nowhere", "n0", saved), other("/elsewhere", "n0", saved);
  hanging disk;
  slow.ask(disk.work());
  disk.wait_until_begun();
  box<std::string> told;
  other.ask(tells(told, "done"));
  CHECK(told.take() == "done");
  disk.let_go.set_value();
}

TEST_CASE("at its end what is under way and what was left for later is done") {
  box<std::string> told;
  hanging disk;
  auto thread = std::make_unique<place_thread>("/nowhere", "n0",
                                               std::make_shared<os::saved_again_by_threads>());
  thread->ask(disk.work());
  disk.wait_until_begun();
  thread->ask_later(tells(told, "later"));
  std::thread ends([&thread] { thread.reset(); });
  disk.let_go.set_value();
  ends.join();
  CHECK(told.take() == "later");
}
