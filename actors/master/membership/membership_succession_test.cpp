// A newcomer takes the name of a node that may still run workers.

#include "actors/master/membership/membership_core.hpp"
#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

const std::string taken = "another node supervisor with the name 'a' has taken its place";
const std::string lost_but_runs = "announce NodeLost a: " + taken + " (it may run)";
const std::string enters = lines("announce NodePresent a idle g0", "welcome 2", "let go of a");

/// How long a node may take to end workers that have one second for that.
const auto time_to_end = 1s + limits::kill_within + limits::farewell_within;

/// Node a, of which a second launcher is started.
struct story {
  membership_core core{membership_options{"job", 3s, 6s, 11s, 60s, 1s},
                       messages::author("master/membership"), dawn};
  instant now = dawn;
  std::string before = comes(1, 1);

  std::string comes(std::uint64_t which, std::uint64_t session) {
    return text(core.hello(now, session_id{session},
                           hello("a", which, [](auto b) { b.setStopWithinMs(1000); })));
  }
  std::string link_ends(std::uint64_t session, ports::link_end how = ports::link_end::closed) {
    return text(core.closed(now, session_id{session}, {how, "nothing heard for 1.5 s"}));
  }
  std::string says_goodbye(std::uint64_t session) {
    return text(core.departed(now, session_id{session}, "refused"));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
};

} // namespace

TEST_SUITE("membership_core, a newcomer with the name of a node") {
  TEST_CASE("is let in when the node has ended its workers, and the planner knows it by then") {
    story s;
    CHECK(s.comes(2, 2) == lines(lost_but_runs, "send off 1: " + taken));
    CHECK_FALSE(s.core.session_of("a"));
    CHECK(s.says_goodbye(1) == lines(enters, "fence 1: refused"));
    CHECK(s.core.session_of("a") == session_id{2});
    CHECK(s.link_ends(1) == "");
    CHECK(s.comes(1, 3) == "refuse 3: " + taken);
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("is let in when the link of the node ends: its process has, or does not answer") {
    for (const auto how : {ports::link_end::closed, ports::link_end::silent}) {
      story s;
      s.comes(2, 2);
      CHECK(s.link_ends(1, how) == enters);
    }
  }

  TEST_CASE("one line tells that a node which does not answer may still run workers") {
    story s;
    s.comes(2, 2);
    const auto effects =
        s.core.closed(s.now, session_id{1}, {ports::link_end::silent, "nothing heard for 1.5 s"});
    const auto* told = std::get_if<membership_core::note>(&effects.front());
    REQUIRE(told);
    CHECK(told->event.name == "node_unanswering");
    CHECK(told->event.severity == log::level::warning);
  }

  TEST_CASE("is let in when the node has had its time") {
    story s;
    s.comes(2, 2);
    CHECK(s.core.next_wakeup() == s.now + time_to_end);
    CHECK(s.passes(time_to_end - 1ns) == "");
    CHECK(s.passes(1ns) == lines("fence 1: its time to end its workers is over", enters));
    CHECK(s.link_ends(1) == "");
  }

  TEST_CASE("that says hello again waits on, and its earlier link means nothing") {
    story s;
    s.comes(2, 2);
    s.now += 5s;
    CHECK(s.comes(2, 3) == "fence 2: the node has a newer link");
    CHECK(s.link_ends(2) == "");
    CHECK(s.says_goodbye(1).find("welcome 3") != std::string::npos);
  }

  TEST_CASE("gives way to a third one") {
    story s;
    s.comes(2, 2);
    CHECK(s.comes(3, 3) == "refuse 2: " + taken);
    CHECK(s.says_goodbye(1).find("welcome 3") != std::string::npos);
  }

  TEST_CASE("that leaves meanwhile leaves the name free") {
    story s;
    s.comes(2, 2);
    CHECK(s.link_ends(2) == "");
    CHECK(s.says_goodbye(1) == lines("let go of a", "fence 1: refused"));
    CHECK(s.comes(3, 3) == lines("announce NodePresent a idle g0", "welcome 3"));
  }

  TEST_CASE("waits for a node that is away until that is back, and then for its workers") {
    story s;
    s.link_ends(1);
    CHECK(s.comes(2, 2) == lost_but_runs);
    s.now += 1s;
    CHECK(s.comes(1, 3) == "send off 3: " + taken);
    CHECK(s.core.next_wakeup() == s.now + time_to_end);
    CHECK(s.says_goodbye(3).find(enters) == 0);
  }

  TEST_CASE("waits for a node that is away for as long as that may take to be back") {
    story s;
    s.link_ends(1);
    s.comes(2, 2);
    CHECK(s.passes(3s - 1ns) == "");
    CHECK(s.passes(1ns) == enters);
  }

  TEST_CASE("waits only until a cut network's nodes have had time to dial") {
    story s;
    s.link_ends(1, ports::link_end::isolated);
    s.comes(2, 2);
    CHECK(s.passes(11s - 1ns) == "");
    CHECK(s.passes(1ns) == enters);
  }

  TEST_CASE("is waited for after the verdict, as is the node that still ends its workers") {
    story s;
    s.comes(2, 2);
    s.passes(limits::return_to_sleeper_within);
    CHECK(text(s.core.job_over(s.now)) == "");
    REQUIRE(s.core.next_wakeup());
    CHECK(*s.core.next_wakeup() > s.now);
    CHECK(s.says_goodbye(1).find("everyone left") == std::string::npos);
    CHECK(s.says_goodbye(2).find("everyone left") != std::string::npos);
  }
}
