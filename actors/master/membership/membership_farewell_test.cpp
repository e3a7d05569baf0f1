#include "actors/limits.hpp"
#include "actors/master/membership/membership_core.hpp"
#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

constexpr auto saves = limits::kill_within + limits::last_saves_within + limits::farewell_within;

struct story {
  membership_core core{membership_options{"job"}, messages::author("master/membership"), dawn};
  instant now = dawn;

  std::string comes(const node_name& node, std::uint64_t session, duration stop_within = {},
                    std::uint64_t g = 0) {
    return text(core.hello(
        now, session_id{session}, hello(node, 1, [stop_within, g](messages::Hello::Builder b) {
          b.initState().setGeneration(g);
          b.setStopWithinMs(static_cast<std::uint64_t>(milliseconds_of(stop_within)));
        })));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
};

} // namespace

TEST_SUITE("membership_core: after the verdict") {
  TEST_CASE("the master stays as long as nodes save") {
    story s;
    s.comes("a", 1);
    s.comes("b", 2);
    CHECK(text(s.core.job_over(s.now)) == "");
    CHECK(s.passes(100s) == "");
    s.core.departed(s.now, session_id{1}, "done");
    CHECK(s.passes(20s) == "");
    CHECK(text(s.core.departed(s.now, session_id{2}, "done")).find("everyone left") !=
          std::string::npos);
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("and says now and again what it waits for") {
    story s;
    s.comes("a", 1);
    s.core.job_over(s.now);
    REQUIRE(s.core.next_wakeup() == dawn + 10s);
    s.now += 10s;
    CHECK(notes(s.core.tick(s.now)).find("the job is over; waiting for 1 node(s), a first") == 0);
    s.core.departed(s.now, session_id{1}, "done");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("but no longer than workers and last saves may take, and names a node that is left") {
    story s;
    s.comes("a", 1);
    s.core.job_over(s.now);
    const auto until = limits::stop_workers_within + saves;
    CHECK(s.passes(until - 1ms) == "");
    s.now += 1ms;
    const auto effects = s.core.tick(s.now);
    CHECK(text(effects) == "everyone left");
    CHECK(notes(effects).find("1 node(s) have not left in time") == 0);
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a node says how long its workers may take") {
    story s;
    s.comes("a", 1, 90s);
    s.comes("b", 2, 10s);
    s.core.job_over(s.now);
    CHECK(s.passes(90s + saves - 1ms) == "");
    CHECK(s.passes(1ms) == "everyone left");
  }

  TEST_CASE("a node that finds a restarted master late has its whole time") {
    story s;
    s.comes("a", 1);
    s.core.job_over(s.now);
    s.passes(100s);
    CHECK(s.comes("b", 2, 90s, 4).find("welcome 2") != std::string::npos);
    s.core.departed(s.now, session_id{1}, "done");
    CHECK(s.passes(90s + saves - 1ms) == "");
    CHECK(s.passes(1ms) == "everyone left");
  }

  TEST_CASE("a node that took no part does not hear that it has succeeded") {
    story s;
    s.comes("a", 1);
    s.core.job_over(s.now);
    CHECK(s.comes("late", 2).find("refuse 2 for now") == 0);
    CHECK(s.comes("away", 3, {}, 1).find("welcome 3") != std::string::npos);
  }
}
