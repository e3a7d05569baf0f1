#include "launch/keeper/testing/keeper_story.hpp"

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

TEST_SUITE("keeper_core") {
  TEST_CASE("a sweep kills unknown processes, round by round, and forgets those that have ended") {
    story s;
    s.runs(1, 101);
    s.runs(2, 102);
    s.ends(102, killed);
    CHECK(s.says<SweepWanted>() == "look");
    CHECK(s.sees({9, 100, 101, 500}) == "kill 500 with 9");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({9, 100, 101, 501}) == "kill 501 with 9");
    CHECK(s.ends(501, killed) == "look");
    CHECK(s.sees({9, 100, 101}) == "swept 2");
    s.crash();
    CHECK(s.supervisor(200) == "present 1 (pid 101, label 71), presented, life 1");
  }

  TEST_CASE("a list from before a child's end does not end a sweep: its orphans are not in it") {
    story s;
    s.says<SweepWanted>();
    CHECK(s.sees({100, 500}) == "kill 500 with 9");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({100}, true) == "look");
    CHECK(s.sees({100, 501}) == "kill 501 with 9");
    CHECK(s.ends(501, killed) == "look");
    CHECK(s.sees({100}) == "swept 2");
  }

  TEST_CASE("a sweep waits while a start is under way, since the new process is not known yet") {
    story s;
    s.says<ProcessStarting>();
    CHECK(s.says<SweepWanted>() == "look");
    CHECK(s.sees({100, 101}) == "");
    CHECK(s.starts(1, 101) == "look");
    CHECK(s.sees({100, 101}) == "swept 0");
  }

  TEST_CASE("a sweep ends survivors that were not adopted") {
    story s;
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    s.says<SweepWanted>();
    CHECK(s.sees({101, 200}) == "kill group 101 with 9");
    CHECK(s.ends(101, killed) == "look");
    CHECK(s.sees({200}) == "swept 0");
  }

  TEST_CASE("where no process in the group is to live, a sweep kills all of it, once") {
    story s(true);
    s.runs(1, 101);
    s.ends(101, killed);
    s.says<SweepWanted>();
    CHECK(s.sees({9, 100, 500}) == "kill 500 with 9, kill all in the group");
    // One was listed, one below it was not.
    CHECK(s.group_killed({500, 501}) == "look");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({9, 100, 501}) == "kill 501 with 9");
    CHECK(s.ends(501, killed) == "look");
    CHECK(s.sees({9, 100}) == "swept 2");
    s.says<SweepWanted>();
    CHECK(s.sees({9, 100}) == "kill all in the group");
    CHECK(s.group_killed({}) == "look");
    CHECK(s.sees({9, 100}) == "swept 0");
  }

  TEST_CASE("the group is not killed while one lives in it that is to live; a store is not in it") {
    story s(true);
    s.runs(1, 101);
    s.says<SweepWanted>();
    CHECK(s.sees({100, 101, 500}) == "kill 500 with 9");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({100, 101}) == "swept 1");
    s.ends(101, killed);
    CHECK(s.wants_store(5) == "start store 5");
    s.core.store_started(s.now, story::store(5), 105);
    s.says<SweepWanted>();
    CHECK(s.sees({100, 105}) == "kill all in the group");
    CHECK(s.group_killed({}) == "look");
    CHECK(s.sees({100, 105}) == "swept 0");
  }

  TEST_CASE("the group is not killed while a start is under way: it may be in it") {
    story s(true);
    s.says<ProcessStarting>();
    s.says<SweepWanted>();
    CHECK(s.sees({100, 101}) == "");
    CHECK(s.starts(1, 101) == "look");
    CHECK(s.sees({100, 101}) == "swept 0");
  }

  TEST_CASE("a survivor that was not adopted goes with the group, and is no stray") {
    story s(true);
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    s.says<SweepWanted>();
    CHECK(s.sees({101, 200}) == "kill group 101 with 9, kill all in the group");
    CHECK(s.group_killed({101, 102}) == "look");
    CHECK(s.ends(101, killed) == "look");
    CHECK(s.sees({102, 200}) == "kill 102 with 9");
    CHECK(s.ends(102, killed) == "look");
    CHECK(s.sees({200}) == "swept 1");
  }

  TEST_CASE("one that the kernel holds does not hold up a sweep for ever") {
    story s;
    s.says<SweepWanted>();
    CHECK(s.sees({100, 500}) == "kill 500 with 9");
    CHECK(s.core.next_wakeup() == s.now + limits::kill_within);
    CHECK(s.passes(limits::kill_within) == "swept 1");
  }

  TEST_CASE("a start that a crash cut off is no reason to spare anybody") {
    story s;
    s.says<ProcessStarting>();
    CHECK_FALSE(s.core.strays_may_be_reaped());
    s.crash();
    s.supervisor(200);
    s.says<SweepWanted>();
    CHECK(s.sees({101, 200}) == "kill 101 with 9");
  }
}
