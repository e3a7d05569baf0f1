#include "actors/node_supervisor/worker_group/processes/worker_process/worker_process_core.hpp"

#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = worker_process_core::phase;

namespace {

struct story {
  worker_process_core core{4711, 3};
  instant now = dawn;

  std::string is_told_to_end(int signal, duration within) {
    return text(core.end(now, signal, within));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
  std::string exits(ports::exit_status how) { return text(core.exited(now, how)); }
};

} // namespace

TEST_SUITE("worker_process_core") {
  TEST_CASE("a process that ends by itself is reported, once") {
    story s;
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.core.in_words() == "rank 3 runs as pid 4711");
    CHECK(s.exits(exited(7)) == "ended with exit code 7");
    CHECK(s.exits(exited(7)) == "");
    CHECK(s.is_told_to_end(SIGTERM, 30s) == "");
    CHECK(s.passes(1h) == "");
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
    CHECK(s.exits(killed_by(SIGTERM)) == "ended with signal 15 (SIGTERM)");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1s) == "");
  }

  TEST_CASE("one that ignores SIGTERM is killed when its time is up") {
    story s;
    s.is_told_to_end(SIGTERM, 30s);
    CHECK(s.core.next_wakeup() == dawn + 30s);
    CHECK(s.passes(30s) == "signal 9");
    CHECK(s.core.current_phase() == phase::killed);
    CHECK(s.exits(killed_by(SIGKILL)) == "ended with signal 9 (SIGKILL)");
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
    CHECK(s.core.current_phase() == phase::ending);
  }
}
