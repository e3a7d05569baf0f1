#include "runtime/os/keeper/keeper_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

using namespace troupe;
using namespace troupe::os;
using kind = packet::kind;

namespace {

struct words {
  std::string operator()(const keeper_core::start_supervisor&) const { return "start supervisor"; }
  std::string operator()(const keeper_core::send& e) const {
    switch (e.what.what) {
    case kind::present:
      return fmt::format("present {} (pid {}, label {})", e.what.process, e.what.pid, e.what.label);
    case kind::presented:
      return fmt::format("presented, life {}", e.what.number);
    case kind::ended:
      return fmt::format("{} ended with {}{}", e.what.process, e.what.signalled ? "signal " : "",
                         e.what.number);
    case kind::swept:
      return fmt::format("swept {}", e.what.number);
    case kind::user_signal:
      return fmt::format("user's {}", e.what.number);
    default:
      return "?";
    }
  }
  std::string operator()(const keeper_core::signal& e) const {
    return fmt::format("kill {}{} with {}", e.group ? "group " : "", e.pid, e.number);
  }
  std::string operator()(const keeper_core::start_store& e) const {
    return fmt::format("start store {}", e.order.process);
  }
  std::string operator()(const keeper_core::kill_group&) const { return "kill all in the group"; }
  std::string operator()(const keeper_core::look&) const { return "look"; }
  std::string operator()(const keeper_core::finish& e) const {
    return fmt::format("finish {}{}", e.exit_code, e.complaint.empty() ? "" : ": " + e.complaint);
  }
};

std::string text(const keeper_core::effects& effects) {
  std::string all;
  for (const auto& e : effects)
    all += (all.empty() ? "" : ", ") + std::visit(words{}, e);
  return all;
}

const ports::exit_status killed{true, SIGKILL};

/// Of a keeper that found pid 9 when it began.
struct story {
  keeper_core core;
  instant now{1h};

  explicit story(bool grouped = false) : core({SIGTERM}, {9}, grouped) {
    CHECK(text(core.begin(now)) == "start supervisor");
    CHECK(supervisor(100) == "presented, life 0");
  }
  std::string supervisor(pid_t pid) { return text(core.supervisor_started(now, pid)); }
  std::string crash() { return text(core.supervisor_ended(now, killed)); }
  std::string says(kind what, std::uint64_t process = 0, int number = 0, pid_t pid = 0) {
    packet p;
    p.what = what;
    p.process = process;
    p.number = number;
    p.pid = pid;
    p.label = process + 70;
    return text(core.received(now, p));
  }
  void runs(std::uint64_t process, pid_t pid) {
    CHECK(says(kind::starting, process) == "");
    CHECK(says(kind::started, process, 0, pid) == "look");
  }
  std::string ends(pid_t pid, ports::exit_status how) {
    return text(core.child_ended(now, pid, how));
  }
  std::string sees(const std::set<pid_t>& pids, bool outdated = false) {
    return text(core.children(now, pids, outdated));
  }
  std::string group_killed(const std::vector<pid_t>& members) {
    return text(core.group_killed(now, members));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
};

} // namespace

TEST_SUITE("keeper_core") {
  TEST_CASE("the end of a process is told to its supervisor, once") {
    story s;
    s.runs(1, 101);
    CHECK(s.ends(101, {false, 7}) == "1 ended with 7");
    CHECK(s.ends(101, {false, 7}) == "");
  }

  TEST_CASE("a signal goes to the group of a process that lives, and to nobody later") {
    story s;
    s.runs(1, 101);
    CHECK(s.says(kind::signal, 1, SIGTERM) == "kill group 101 with 15");
    CHECK(s.says(kind::signal, 2, SIGTERM) == "");
    s.ends(101, killed);
    CHECK(s.says(kind::signal, 1, SIGTERM) == "");
  }

  TEST_CASE("the exit code is what the supervisor says, not how it ends") {
    story s;
    s.says(kind::over, 0, 3);
    CHECK(s.crash() == "finish 3");
    CHECK(s.core.finished());
  }

  TEST_CASE("a successor is presented with what there is, and hears of ends once it has adopted") {
    story s;
    s.runs(1, 101);
    s.runs(2, 102);
    CHECK(s.crash() == "start supervisor");
    CHECK(s.ends(102, {false, 0}) == "");
    CHECK(s.supervisor(200) ==
          "present 1 (pid 101, label 71), present 2 (pid 102, label 72), presented, life 1");
    CHECK(s.says(kind::adopted, 1) == "");
    CHECK(s.says(kind::adopted, 2) == "2 ended with 0");
    CHECK(s.ends(101, killed) == "1 ended with signal 9");
  }

  TEST_CASE("an end that the predecessor was told, and did not live to act on, is told again") {
    story s;
    s.runs(1, 101);
    CHECK(s.ends(101, {false, 7}) == "1 ended with 7");
    s.crash();
    CHECK(s.supervisor(200) == "present 1 (pid 101, label 71), presented, life 1");
    CHECK(s.says(kind::adopted, 1) == "1 ended with 7");
  }

  TEST_CASE("a sweep kills who is unknown, round by round, and forgets who has ended") {
    story s;
    s.runs(1, 101);
    s.runs(2, 102);
    s.ends(102, killed);
    CHECK(s.says(kind::sweep) == "look");
    CHECK(s.sees({9, 100, 101, 500}) == "kill 500 with 9");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({9, 100, 101, 501}) == "kill 501 with 9");
    CHECK(s.ends(501, killed) == "look");
    CHECK(s.sees({9, 100, 101}) == "swept 2");
    s.crash();
    CHECK(s.supervisor(200) == "present 1 (pid 101, label 71), presented, life 1");
  }

  TEST_CASE("a list from before somebody's end does not end a sweep: its orphans are not in it") {
    story s;
    s.says(kind::sweep);
    CHECK(s.sees({100, 500}) == "kill 500 with 9");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({100}, true) == "look");
    CHECK(s.sees({100, 501}) == "kill 501 with 9");
    CHECK(s.ends(501, killed) == "look");
    CHECK(s.sees({100}) == "swept 2");
  }

  TEST_CASE("a sweep waits while a start is under way, since nobody knows who that is") {
    story s;
    s.says(kind::starting, 1);
    CHECK(s.says(kind::sweep) == "look");
    CHECK(s.sees({100, 101}) == "");
    CHECK(s.says(kind::started, 1, 0, 101) == "look");
    CHECK(s.sees({100, 101}) == "swept 0");
  }

  TEST_CASE("a sweep ends survivors that were not adopted") {
    story s;
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    s.says(kind::sweep);
    CHECK(s.sees({101, 200}) == "kill group 101 with 9");
    CHECK(s.ends(101, killed) == "look");
    CHECK(s.sees({200}) == "swept 0");
  }

  TEST_CASE("where nobody in the group is to live, a sweep kills all of it, once") {
    story s(true);
    s.runs(1, 101);
    s.ends(101, killed);
    s.says(kind::sweep);
    CHECK(s.sees({9, 100, 500}) == "kill 500 with 9, kill all in the group");
    // One was listed, one below it was not.
    CHECK(s.group_killed({500, 501}) == "look");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({9, 100, 501}) == "kill 501 with 9");
    CHECK(s.ends(501, killed) == "look");
    CHECK(s.sees({9, 100}) == "swept 2");
    s.says(kind::sweep);
    CHECK(s.sees({9, 100}) == "kill all in the group");
    CHECK(s.group_killed({}) == "look");
    CHECK(s.sees({9, 100}) == "swept 0");
  }

  TEST_CASE("the group is not killed while one lives in it that is to live; a store is not in it") {
    story s(true);
    s.runs(1, 101);
    s.says(kind::sweep);
    CHECK(s.sees({100, 101, 500}) == "kill 500 with 9");
    CHECK(s.ends(500, killed) == "look");
    CHECK(s.sees({100, 101}) == "swept 1");
    s.ends(101, killed);
    CHECK(s.says(kind::open_store, 5) == "start store 5");
    packet order;
    order.process = 5;
    s.core.store_started(s.now, order, 105);
    s.says(kind::sweep);
    CHECK(s.sees({100, 105}) == "kill all in the group");
    CHECK(s.group_killed({}) == "look");
    CHECK(s.sees({100, 105}) == "swept 0");
  }

  TEST_CASE("the group is not killed while a start is under way: it may be in it") {
    story s(true);
    s.says(kind::starting, 1);
    s.says(kind::sweep);
    CHECK(s.sees({100, 101}) == "");
    CHECK(s.says(kind::started, 1, 0, 101) == "look");
    CHECK(s.sees({100, 101}) == "swept 0");
  }

  TEST_CASE("a survivor that was not adopted goes with the group, and is no stray") {
    story s(true);
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    s.says(kind::sweep);
    CHECK(s.sees({101, 200}) == "kill group 101 with 9, kill all in the group");
    CHECK(s.group_killed({101, 102}) == "look");
    CHECK(s.ends(101, killed) == "look");
    CHECK(s.sees({102, 200}) == "kill 102 with 9");
    CHECK(s.ends(102, killed) == "look");
    CHECK(s.sees({200}) == "swept 1");
  }

  TEST_CASE("one that the kernel holds does not hold up a sweep for ever") {
    story s;
    s.says(kind::sweep);
    CHECK(s.sees({100, 500}) == "kill 500 with 9");
    CHECK(s.core.next_wakeup() == s.now + limits::kill_within);
    CHECK(s.passes(limits::kill_within) == "swept 1");
  }

  TEST_CASE("a start that a crash cut off is no reason to spare anybody") {
    story s;
    s.says(kind::starting, 1);
    CHECK_FALSE(s.core.strays_may_be_reaped());
    s.crash();
    s.supervisor(200);
    s.says(kind::sweep);
    CHECK(s.sees({101, 200}) == "kill 101 with 9");
  }

  TEST_CASE("wishes to end are repeated to a successor, others are not") {
    story s;
    CHECK(text(s.core.user_signal(s.now, SIGUSR1)) == "user's 10");
    CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "user's 15");
    s.crash();
    CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "");
    CHECK(s.supervisor(200) == "presented, life 1, user's 15, user's 15");
  }

  TEST_CASE("the first crash costs no time, later ones more and more, too many the job") {
    story s;
    std::string delays;
    for (std::size_t crash = 0; crash < limits::supervisor_crashes_max; ++crash) {
      auto what = s.crash();
      const instant from = s.now;
      while (what.empty())
        what = s.passes(*s.core.next_wakeup() - s.now);
      CHECK(what == "start supervisor");
      delays += in_words(s.now - from) + " ";
      s.supervisor(200);
    }
    CHECK(delays == "0 µs 100 ms 200 ms 400 ms 800 ms 1.0 s 1.0 s 1.0 s 1.0 s 1.0 s ");
    CHECK(s.crash() ==
          "finish 1: the node supervisor crashed 11 times within 60.0 s, the last time "
          "with signal 9 (SIGKILL); giving up");
  }

  TEST_CASE("who always crashes is given up, on a machine that takes its time for that as well") {
    story s;
    for (std::size_t crash = 0; crash < limits::supervisor_crashes_max; ++crash) {
      auto what = s.crash();
      while (what.empty())
        what = s.passes(*s.core.next_wakeup() - s.now);
      s.supervisor(200);
      s.passes(4s);
    }
    CHECK(s.crash().rfind("finish 1: the node supervisor crashed 11 times", 0) == 0);
  }

  TEST_CASE("who worked for a while before it crashed is started again at once") {
    story s;
    s.crash();
    s.supervisor(200);
    CHECK(s.crash() == ""); // it had hardly begun
    s.passes(limits::supervisor_restart_first);
    for (std::size_t crash = 2; crash < limits::supervisor_crashes_max; ++crash) {
      s.supervisor(200);
      s.passes(limits::supervisor_works_after);
      CHECK(s.crash() == "start supervisor");
    }
    s.supervisor(200);
    CHECK(s.crash().rfind("finish 1: the node supervisor crashed 11 times", 0) == 0);
  }

  TEST_CASE("crashes long ago do not count") {
    story s;
    for (int i = 0; i < 100; ++i) {
      CHECK(s.crash() == "start supervisor");
      s.supervisor(200);
      s.passes(limits::supervisor_crashes_within + 1ms);
    }
  }

  TEST_CASE("a store is a process like another; the next one waits until it has left its port") {
    story s;
    CHECK(s.says(kind::open_store, 5) == "start store 5");
    packet order;
    order.process = 5;
    s.core.store_started(s.now, order, 105);
    CHECK(s.says(kind::signal, 5, SIGKILL) == "kill group 105 with 9");
    CHECK(s.says(kind::open_store, 6) == "");
    CHECK(s.ends(105, killed) == "5 ended with signal 9, start store 6");
  }
}
