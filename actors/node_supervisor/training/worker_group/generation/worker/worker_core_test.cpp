#include "actors/node_supervisor/training/worker_group/generation/worker/worker_core.hpp"

#include "actors/limits.hpp"
#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = worker_core::phase;

namespace {

assignment rank_3() {
  assignment a;
  a.which = generation{7};
  a.local = 1;
  a.rank = 3;
  return a;
}

struct story {
  worker_core core{rank_3(), messages::author("worker")};
  instant now = dawn;

  explicit story(bool started = true) {
    if (started)
      starts();
  }
  std::string starts() { return text(core.started(now, 4711)); }
  std::string is_told_to_end(int signal, duration within) {
    return text(core.stop(now, signal, within));
  }
  std::string shuts_down() { return text(core.shut_down(now)); }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
  std::string exits(ports::exit_status how) { return text(core.exited(now, how)); }
  /// It ends, and the reason is found out.
  std::string ends(ports::exit_status how) {
    if (how.success())
      return exits(how);
    exits(how);
    exit_report why;
    why.message = "ValueError";
    return text(core.explained(now, why));
  }
  std::string is_noted() { return text(core.noted()); }
};

} // namespace

TEST_SUITE("worker_core") {
  TEST_CASE("a process that ends well is reported, and then the worker ends well") {
    story s(false);
    CHECK(s.core.in_words() == "rank 3 is being started");
    CHECK(s.starts() == "tell WorkerStarted g7 1 pid 4711");
    CHECK(s.starts() == "");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.core.in_words() == "rank 3 runs as pid 4711");
    CHECK(s.exits(exited(0)) == "tell WorkerEnded g7 1 code 0");
    CHECK(s.exits(exited(0)) == "");
    CHECK(s.is_noted() == "end well");
    CHECK(s.is_noted() == "");
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("one that ends badly is explained, then reported, then the worker ends as badly") {
    story s;
    CHECK(s.exits(exited(7)) == "explain exit code 7");
    CHECK(text(s.core.explained(s.now, {"ValueError", {}, {}, 0, {}, false, {}})) ==
          "tell WorkerEnded g7 1 code 7: ValueError");
    CHECK(s.is_noted() == "end badly: exit code 7");
  }

  TEST_CASE("one that cannot be started is a bad end as well") {
    story s(false);
    CHECK(text(s.core.not_started(s.now, "no such program", 5)) ==
          "tell WorkerEnded g7 1 code 1 before the start: no such program");
    CHECK(s.is_noted() == "end badly: no such program");
  }

  TEST_CASE("an order to stop that comes before the process is obeyed once it is there") {
    story s(false);
    CHECK(s.is_told_to_end(SIGTERM, 30s) == "");
    CHECK(s.starts() == lines("tell WorkerStarted g7 1 pid 4711", "signal 15"));
    CHECK(s.ends(killed_by(SIGTERM)) ==
          "tell WorkerEnded g7 1 code -15 0 us after our signal: ValueError");
    CHECK(s.is_noted() == "end well");
  }

  TEST_CASE("an end that was asked for is a good one, however the process took it") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    s.now += 2ms;
    CHECK(s.ends(exited(3)) == "tell WorkerEnded g7 1 code 3 2000 us after our signal: ValueError");
    CHECK(s.is_noted() == "end well");
  }

  TEST_CASE(
      "a signal that is passed on changes nothing, and comes too late for one that is to end") {
    story s;
    CHECK(text(s.core.pass_on(SIGUSR1)) == "signal 10");
    CHECK(s.core.in_words() == "rank 3 runs as pid 4711");
    s.is_told_to_end(SIGTERM, 30s);
    CHECK(text(s.core.pass_on(SIGUSR1)) == "");
  }

  TEST_CASE("one that ends when asked is not killed") {
    story s;
    CHECK(s.is_told_to_end(SIGTERM, 30s) == "signal 15");
    CHECK(s.core.in_words() == "rank 3 (pid 4711) was asked to end");
    CHECK(s.passes(30s - 1ns) == "");
    CHECK(s.ends(killed_by(SIGTERM)).find("tell WorkerEnded g7 1 code -15") == 0);
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("an end that is heard before the start counts, when the start is heard") {
    story s(false);
    CHECK(s.exits(exited(0)) == "");
    CHECK(s.starts() == lines("tell WorkerStarted g7 1 pid 4711", "tell WorkerEnded g7 1 code 0"));
  }

  TEST_CASE("a disk that does not answer is waited for only so long") {
    exit_report why;
    why.message = "too late";
    story starting(false);
    starting.core.asked(starting.now);
    CHECK(starting.passes(limits::start_within - 1ns) == "");
    CHECK(starting.passes(1ns).find("overdue: it could not be started within") == 0);
    CHECK(text(starting.core.unanswered(starting.now, why)) ==
          "tell WorkerEnded g7 1 code 1 before the start: too late");
    CHECK(starting.starts() == "");
    CHECK_FALSE(starting.core.next_wakeup());

    story ended;
    ended.exits(exited(7));
    CHECK(ended.core.next_wakeup() == ended.now + limits::explain_within);
    CHECK(ended.passes(limits::explain_within).find("overdue: exit code 7 (its error file") == 0);
    CHECK(text(ended.core.unanswered(ended.now, why)) == "tell WorkerEnded g7 1 code 7: too late");
    CHECK(text(ended.core.explained(ended.now, why)) == "");
    CHECK_FALSE(ended.core.next_wakeup());
  }

  TEST_CASE("one that ignores SIGTERM is killed when its time is up") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    CHECK(s.core.next_wakeup() == dawn + 30s);
    CHECK(s.passes(30s) == "signal 9");
    CHECK(s.core.current_phase() == phase::killed);
    CHECK(s.exits(killed_by(SIGKILL)) == "explain signal 9 (SIGKILL)");
  }

  TEST_CASE("one that the kernel holds is killed again and again, and complained about") {
    story s;
    s.is_told_to_end(SIGKILL, 1h);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(*s.core.next_wakeup() == s.now + limits::kill_within);
      s.now += limits::kill_within;
      const auto effects = s.core.tick(s.now);
      CHECK(text(effects) == "signal 9");
      CHECK(notes(effects).find("is still there after SIGKILL") != std::string::npos);
    }
  }

  TEST_CASE("when the tree goes down the process is killed at once, and not waited for longer") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    CHECK(s.shuts_down() == "signal 9");
    CHECK(s.shuts_down() == "");
    s.now += limits::kill_within;
    const auto effects = s.core.tick(s.now);
    CHECK(text(effects) == lines("signal 9", "end badly: rank 3 is still there after SIGKILL"));
    CHECK(notes(effects).find("it is left behind") != std::string::npos);
  }

  TEST_CASE("asked again it gets no more time than it has") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    s.now += 10s;
    CHECK(s.is_told_to_end(SIGTERM, 30s) == "");
    CHECK(s.core.next_wakeup() == dawn + 30s);
    CHECK(s.is_told_to_end(SIGINT, 20s) == "");
  }

  TEST_CASE("but it may get less") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    s.now += 10s;
    CHECK(s.is_told_to_end(SIGINT, 5s) == "signal 2");
    CHECK(s.core.next_wakeup() == dawn + 15s);
  }

  TEST_CASE("SIGKILL overtakes any patience, and nothing overtakes SIGKILL") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    CHECK(s.is_told_to_end(SIGKILL, 30s) == "signal 9");
    CHECK(s.is_told_to_end(SIGKILL, 30s) == "");
    CHECK(s.is_told_to_end(SIGTERM, 1ns) == "");
    CHECK(s.core.in_words() == "rank 3 (pid 4711) was killed");
  }

  TEST_CASE("an alarm that rings early changes nothing") {
    story s;
    CHECK(s.passes(1h) == "");
    s.is_told_to_end(SIGTERM, 30s);
    CHECK(s.passes(29s) == "");
    CHECK(s.core.current_phase() == phase::stopping);
  }
}
