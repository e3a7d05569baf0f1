#include "actors/node_supervisor/hang_watchdog/standing_place.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;

namespace {

diag::child_look child(std::int32_t pid, std::string role, char state, std::string place) {
  diag::child_look c;
  c.pid = pid;
  c.role = std::move(role);
  c.state = state;
  c.place = std::move(place);
  return c;
}

/// Waits in its queue for four loaders, which all wait for something to do.
diag::process_look loads() {
  diag::process_look l;
  l.place = "queues.py:108 (get)";
  for (int i = 0; i < 4; ++i)
    l.children.push_back(
        child(50 + i, "data loader worker " + std::to_string(i), 'S', "poll() of a queue"));
  return l;
}

} // namespace

TEST_CASE("its own place, unless it waits for a child that is not where the others are") {
  auto l = loads();
  CHECK(standing_place(l, true) == "queues.py:108 (get)");
  l.children[2].place = "read() at data.py:12 (load)";
  CHECK(standing_place(l, true) == "read() at data.py:12 (load) of its data loader's worker 2");
  CHECK(standing_place(l, false) == "queues.py:108 (get)");
}

TEST_CASE(
    "a child that is stopped goes before one that the kernel holds, and before one that ended") {
  auto l = loads();
  l.children[3].place = "read() at data.py:12 (load)";
  l.children[0].state = 'Z';
  CHECK(standing_place(l, true) == "a wait for its data loader's worker 0, which has ended");
  l.children[1].state = 'D';
  l.children[1].place = "fsync()";
  CHECK(standing_place(l, true) == "fsync() of its data loader's worker 1");
  l.children[2].state = 'T';
  CHECK(standing_place(l, true) == "a wait for its data loader's worker 2, which is stopped (kill "
                                   "-CONT 52 lets it go on)");
}

TEST_CASE("an only child is the one it waits for, if it is known what that does") {
  diag::process_look l;
  l.place = "queues.py:108 (get)";
  l.children.push_back(child(50, "data loader worker 0", 'S', "poll() of a queue"));
  CHECK(standing_place(l, true) == "poll() of a queue of its data loader's worker 0");
  l.children.front().place.clear();
  CHECK(standing_place(l, true) == "a wait for its data loader's worker 0");
  l.children.front().role = "tokenizer";
  CHECK(standing_place(l, true) == "a wait for its tokenizer");
  l.children.front().role.clear();
  l.children.front().state = 'T';
  CHECK(standing_place(l, true) == "queues.py:108 (get)");
}

TEST_CASE("a debugger is seen by the kernel, or by where the process is") {
  diag::process_look l;
  l.place = "train.py:42 (step)";
  CHECK(!is_in_debugger(l));
  l.traced = true;
  CHECK(is_in_debugger(l));
  l.traced = false;
  for (const auto* place : {"read() at pdb.py:300 (interaction)", "bdb.py:88 (wait)",
                            "debugpy:1 (x)", "pydevd.py:9 (do_wait_suspend)", "ipdb:2 (y)"}) {
    l.place = place;
    CHECK_MESSAGE(is_in_debugger(l), place);
  }
}
