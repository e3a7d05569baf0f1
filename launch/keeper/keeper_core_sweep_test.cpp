#include "launch/keeper/testing/keeper_story.hpp"

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

/// What the keeper adds to a sweep: which processes are strangers, and what is told. The sweep
/// itself is sweep_core.
TEST_SUITE("keeper_core") {
  TEST_CASE("a sweep kills unknown processes, round by round, and forgets those that have ended") {
    story s;
    s.runs(1, 101);
    s.runs(2, 102);
    s.ends(102, killed);
    CHECK(s.wants_sweep() == "look");
    CHECK(s.sees({9, 100, 101, 500}) == "kill 500 with 9");
    CHECK(s.sees({9, 100, 101, 501}) == "kill 501 with 9");
    CHECK(s.sees({9, 100, 101}) == "swept 2");
    s.crash();
    CHECK(s.supervisor(200) == "present 1 (pid 101, label 71), presented, life 1");
  }

  TEST_CASE("what is left in a group that was signalled is not asked again; what left it is") {
    story s;
    s.runs(1, 101);
    s.signals(1, SIGTERM);
    s.ends(101, killed);
    s.group_of = {{500, 101}};
    CHECK(s.wants_sweep(0s, 30s) == "look");
    CHECK(s.sees({500, 501}) == "kill group 501 with 15, kill group 501 with 18");
    CHECK(s.sees({500}) == "");
    CHECK(s.sees({}) == "swept 0, 1 ended");
  }

  TEST_CASE("a signal that ends nothing, or one for the process alone, is no wish to end") {
    story s;
    s.runs(1, 101);
    s.signals(1, SIGUSR1);
    s.says<ProcessSignal>([](auto b) {
      b.setProcess(1);
      b.setSignal(SIGTERM);
      b.setAlone(true);
    });
    s.ends(101, killed);
    s.group_of = {{500, 101}};
    s.wants_sweep(0s, 30s);
    CHECK(s.sees({500}) == "kill 500 with 15, kill 500 with 18");
  }

  TEST_CASE("the supervisor is told what is waited for") {
    story s;
    s.wants_sweep(0s, 30s);
    s.sees({500, 501, 502, 503, 504});
    CHECK(s.passes(1s) == "waits for 5: stray (pid 500), stray (pid 501), stray (pid 502) and 2 "
                          "more, 0 ms quiet, 29000 ms in all");
  }

  TEST_CASE("a user who wants an end does not wait for helpers, and at the second time for none") {
    story s;
    s.wants_sweep(30s, 35s);
    CHECK(s.sees({500}) == "");
    CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "look, user's 15");
    CHECK(s.sees({500}) == "kill group 500 with 15, kill group 500 with 18");
    CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "look, user's 15");
    CHECK(s.sees({500}) == "kill 500 with 9");
    CHECK(s.sees({}) == "swept 1");
    // The workers that were waited for until now leave helpers, too.
    CHECK(s.wants_sweep(0s, 30s) == "look, look");
    CHECK(s.sees({501}) == "kill 501 with 9");
  }

  TEST_CASE("a list from before a child's end does not end a sweep: its orphans are not in it") {
    story s;
    s.wants_sweep();
    CHECK(s.sees({100, 500}) == "kill 500 with 9");
    CHECK(s.sees({100}, true) == "look");
    CHECK(s.sees({100, 501}) == "kill 501 with 9");
    CHECK(s.sees({100}) == "swept 2");
  }

  TEST_CASE("a sweep waits while a start is under way, since the new process is not known yet") {
    story s;
    s.says<ProcessStarting>();
    CHECK(s.wants_sweep() == "look");
    CHECK(s.sees({100, 101}) == "");
    CHECK(s.starts(1, 101) == "look");
    CHECK(s.sees({100, 101}) == "swept 0");
  }

  TEST_CASE("a sweep ends survivors that were not adopted, and they have its time") {
    story s;
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    s.wants_sweep(0s, 30s);
    CHECK(s.sees({101, 200}) == "kill group 101 with 15, kill group 101 with 18");
    CHECK(s.passes(30s) == "look, waits for 1: a worker (pid 101), 0 ms quiet, 0 ms in all");
    CHECK(s.sees({101, 200}) == "kill group 101 with 9");
    CHECK(s.ends(101, killed) == "look");
    CHECK(s.sees({200}) == "swept 0");
  }

  TEST_CASE("a store that was not adopted is killed, and waited for") {
    story s;
    CHECK(s.wants_store(5) == "start store 5");
    s.core.store_started(s.now, story::store(5), 105);
    s.crash();
    s.supervisor(200);
    s.wants_sweep(0s, 30s);
    CHECK(s.sees({105, 200}) == "kill group 105 with 9");
    CHECK(s.ends(105, killed) == "look");
    CHECK(s.sees({200}) == "swept 0");
  }

  TEST_CASE("where no process in the group is to live, a sweep kills all of it, once") {
    story s(true);
    s.runs(1, 101);
    s.ends(101, killed);
    s.wants_sweep();
    CHECK(s.sees({9, 100, 500}) == "kill 500 with 9, kill all in the group");
    // One was listed, one below it was not.
    CHECK(s.group_killed({500, 501}) == "look");
    CHECK(s.sees({9, 100, 501}) == "kill 501 with 9");
    CHECK(s.sees({9, 100}) == "swept 2");
    s.wants_sweep();
    CHECK(s.sees({9, 100}) == "kill all in the group");
    CHECK(s.group_killed({}) == "look");
    CHECK(s.sees({9, 100}) == "swept 0");
  }

  TEST_CASE("the group is not killed before what is in it had its time") {
    story s(true);
    s.wants_sweep(0s, 30s);
    CHECK(s.sees({500}) == "kill group 500 with 15, kill group 500 with 18");
    CHECK(s.sees({500, 501}) == "kill group 501 with 15, kill group 501 with 18");
    s.passes(30s);
    CHECK(s.sees({500, 501}) == "kill 500 with 9, kill 501 with 9, kill all in the group");
    CHECK(s.group_killed({500, 501}) == "look");
    CHECK(s.sees({}) == "swept 2");
  }

  TEST_CASE("the group is not killed while one lives in it that is to live; a store is not in it") {
    story s(true);
    s.runs(1, 101);
    s.wants_sweep();
    CHECK(s.sees({100, 101, 500}) == "kill 500 with 9");
    CHECK(s.sees({100, 101}) == "swept 1");
    s.ends(101, killed);
    CHECK(s.wants_store(5) == "start store 5");
    s.core.store_started(s.now, story::store(5), 105);
    s.wants_sweep();
    CHECK(s.sees({100, 105}) == "kill all in the group");
    CHECK(s.group_killed({}) == "look");
    CHECK(s.sees({100, 105}) == "swept 0");
  }

  TEST_CASE("the group is not killed while a start is under way: it may be in it") {
    story s(true);
    s.says<ProcessStarting>();
    s.wants_sweep();
    CHECK(s.sees({100, 101}) == "");
    CHECK(s.starts(1, 101) == "look");
    CHECK(s.sees({100, 101}) == "swept 0");
  }

  TEST_CASE("a survivor that was not adopted goes with the group, and is no stray") {
    story s(true);
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    s.wants_sweep();
    CHECK(s.sees({101, 200}) == "kill group 101 with 9, kill all in the group");
    CHECK(s.group_killed({101, 102}) == "look");
    CHECK(s.ends(101, killed) == "look");
    CHECK(s.sees({102, 200}) == "kill 102 with 9");
    CHECK(s.sees({200}) == "swept 1");
  }

  TEST_CASE("a start that a crash cut off is no reason to spare anybody") {
    story s;
    s.says<ProcessStarting>();
    CHECK_FALSE(s.core.strays_may_be_reaped());
    s.crash();
    s.supervisor(200);
    s.wants_sweep();
    CHECK(s.sees({101, 200}) == "kill 101 with 9");
  }

  TEST_CASE("the keeper does not end before the shared-memory managers have, for a while") {
    story s(true);
    s.managers = {500};
    s.wants_sweep(0s, 30s);
    CHECK(s.sees({500}) == "swept 0");
    s.says<SupervisorOver>();
    CHECK(text(s.core.supervisor_ended(s.now, {})) == "look");
    CHECK(s.sees({500}) == "");
    CHECK(s.sees({}) == "finish 0");

    story held;
    held.managers = {500};
    held.wants_sweep(0s, 30s);
    held.sees({500});
    held.says<SupervisorOver>();
    held.core.supervisor_ended(held.now, {});
    CHECK(held.passes(limits::memory_unlinked_within) == "kill 500 with 9");
    CHECK(held.passes(limits::kill_within) == "finish 0");
  }

  TEST_CASE("a user who wants an end waits for no shared-memory manager") {
    story s;
    s.managers = {500};
    s.wants_sweep(0s, 30s);
    s.sees({500});
    s.says<SupervisorOver>();
    s.core.supervisor_ended(s.now, {});
    CHECK(text(s.core.user_signal(s.now, SIGINT)) == "finish 0");
  }
}
