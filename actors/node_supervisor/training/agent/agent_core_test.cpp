#include "messages/limits.hpp"
#include "tests/actors/agent_story.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = agent_core::phase;

namespace {

const std::string end_both = "stop g1: signal 15 within 30.0 s";

agent_story one_that_runs(std::uint64_t g = 1) {
  agent_story s;
  s.runs(g);
  REQUIRE(s.core.current_phase() == phase::running);
  return s;
}

} // namespace

TEST_SUITE("agent_core: a generation that goes well") {
  TEST_CASE("the node of group rank 0 finds a port before it says that it is ready") {
    agent_story s("a");
    CHECK(s.prepares(1) == "open_store");
    CHECK(s.finds_port(4000) == "report Prepared g1 a port 4000");
    CHECK(s.state() == "NodeState ready g1 port 4000");
  }

  TEST_CASE("the others are ready at once") {
    agent_story s("b");
    CHECK(s.prepares(1) == "report Prepared g1 b");
  }

  TEST_CASE("where all workers are on this node, the store is for this machine only") {
    agent_story s;
    CHECK(s.prepares(1, {"a"}) == "open_store for this machine");
  }

  TEST_CASE("a store that no worker came to use is closed as well") {
    agent_story s;
    s.prepares(1);
    s.finds_port(4000);
    CHECK(s.prepares(2) == lines("close_store", "open_store"));
    s.finds_port(4000);
    CHECK(s.stops(2) == lines("close_store", "report Stopped g2 a"));
    CHECK(s.state() == "NodeState idle g2");
  }

  TEST_CASE("where rank 0's worker hosts the store, a port is all that is looked for") {
    agent_core core(agent_options{"a", 2, 30s, {}, false}, messages::author("a/agent"));
    CHECK(text(core.prepare(dawn, prepare(1, {"a", "b"}))) == "pick_port");
    CHECK(text(core.store_placed(dawn, generation{1}, 4000)) ==
          "report Prepared g1 a port 4000 for its worker");
    CHECK(text(core.stop(dawn, stop(1))) == "report Stopped g1 a");
  }

  TEST_CASE("a node that finds no port says so") {
    agent_story s("a");
    s.prepares(1);
    CHECK(s.finds_port(0) == "report Prepared g1 a");
  }

  TEST_CASE("started: every local rank knows its place, and Running is said when all are up") {
    agent_story s("b");
    s.prepares(1);
    CHECK(s.starts(1) == lines("start 0: g1 rank 2 of 4, node 1 of 2, store a.lan:29400",
                               "start 1: g1 rank 3 of 4, node 1 of 2, store a.lan:29400"));
    CHECK(s.state() == "NodeState running g1");
    CHECK(s.comes_up(1, 1) == "");
    CHECK(s.comes_up(1, 1) == "");
    CHECK(s.comes_up(1, 0) == "report Running g1 b");
    CHECK(s.comes_up(1, 0) == "");
  }

  TEST_CASE("finished when all have, and the next verdict ends the node") {
    auto s = one_that_runs();
    CHECK(s.ends(1, 0, exited(0)) == "");
    CHECK(s.ends(1, 1, exited(0)) == "report Finished g1 a");
    CHECK(s.state() == "NodeState finished g1");
    CHECK(s.concludes(true) == "sweep");
    CHECK(s.is_swept() ==
          lines("close_store", "report Goodbye: because", "node_over success by verdict: because"));
    CHECK(s.concludes(true) == "");
    CHECK(s.core.in_words() == "this node's part is over");
  }

  TEST_CASE("directives repeated say again what the master may have missed, and do nothing twice") {
    agent_story s("b");
    s.prepares(1);
    CHECK(s.prepares(1) == "report Prepared g1 b");
    s.starts(1);
    CHECK(s.starts(1) == "");
    CHECK(s.prepares(1) == "");
    CHECK(s.core.current_phase() == phase::running);
  }

  TEST_CASE("directives of another generation than the one it is ready for do nothing") {
    agent_story s("b");
    CHECK(s.starts(1) == "");
    s.prepares(2);
    CHECK(s.starts(1) == "");
    CHECK(s.starts(3) == "");
    CHECK(s.prepares(1) == "");
    CHECK(s.core.current_phase() == phase::ready);
    CHECK(s.core.current() == generation{2});
  }
}

TEST_SUITE("agent_core: failures") {
  TEST_CASE("one worker fails: told at once, the siblings end, then what they left is swept") {
    auto s = one_that_runs();
    CHECK(s.ends(1, 0, exited(7)) == "report Failed g1 a [a/0: exit code 7]");
    CHECK(s.state() == "NodeState failed g1 [a/0: exit code 7]");
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) ==
          lines("report Failed g1 a [a/0: exit code 7] ended", "sweep"));
    CHECK(s.is_swept() == "report Stopped g1 a [a/0: exit code 7]");
    CHECK(s.state() == "NodeState failed g1 [a/0: exit code 7]");
  }

  TEST_CASE(
      "a worker that dies of our signal has not failed, one that fails by itself meanwhile has") {
    const std::vector<std::pair<ports::exit_status, bool>> cases = {
        {killed_by(SIGTERM), false},    {killed_by(SIGKILL), false}, {exited(0), false},
        {exited(128 + SIGTERM), false}, {exited(1), true},           {exited(128), true}};
    for (const auto& each : cases) {
      const auto how = each.first;
      const auto counts = each.second;
      CAPTURE(ports::to_string(how));
      auto s = one_that_runs();
      s.ends(1, 0, exited(7));
      CHECK((s.ends(1, 1, how).find("report Failed g1 a [a/0: exit code 7, a/1: ") == 0) == counts);
    }
  }

  TEST_CASE("a failure is told with its age, and as much of its traceback as there is room for") {
    auto s = one_that_runs();
    const std::string traceback(limits::traceback_max, '.');
    s.ends(1, 0, exited(7),
           {std::string(5'000, 'x'), "begin" + traceback + "end", "f", 5, 40ms, false, {}});
    s.now += 2ms;
    const auto state = s.core.state(s.now);
    auto view = state.read();
    const auto f = view->getFailures()[0];
    CHECK(f.getAgoUs() == 42'000);
    CHECK(f.getMessage().size() == limits::failure_line_max);
    CHECK(f.getTraceback().size() == limits::traceback_max);
    CHECK(std::string(f.getTraceback().cStr()).substr(limits::traceback_max - 4) == ".end");
    CHECK(f.getLogFile() == "f");
    CHECK(f.getUnixTimeMs() == 5);
  }

  TEST_CASE("the first few failures are told with the end of their logs") {
    constexpr local_rank workers = 6;
    agent_core core(agent_options{"a", workers, 30s}, messages::author("a/agent"));
    core.prepare(dawn, prepare(1, {"b", "a"}));
    core.start(dawn, start(1));
    exit_report why;
    why.log_tail = std::string(limits::log_tail_max, '.');
    for (local_rank r = 0; r < workers; ++r)
      core.worker_started(dawn, worker_started(1, r, 100 + static_cast<int>(r)));
    for (local_rank r = 0; r < workers; ++r)
      core.worker_ended(dawn, worker_ended(1, r, {exited(7), why, {}}));
    const auto state = core.state(dawn);
    auto view = state.read();
    REQUIRE(view->getFailures().size() == workers);
    for (unsigned i = 0; i < workers; ++i)
      CHECK(view->getFailures()[i].getLogTail().size() == (i < 4 ? limits::log_tail_max : 0));
  }

  TEST_CASE(
      "a worker that had written its error file before our signal has failed, however it ends") {
    for (const bool before : {true, false}) {
      auto s = one_that_runs();
      s.ends(1, 0, exited(7));
      s.now += 10ms;
      const auto said = s.ends(
          1, 1, killed_by(SIGTERM),
          {"ValueError", {}, "error.json", 0, before ? duration(11ms) : duration(9ms), false, {}});
      CHECK((said.find("a/1: ValueError") != std::string::npos) == before);
    }
  }

  TEST_CASE("one worker fails while the others are starting") {
    agent_story s("a");
    s.prepares(1);
    s.finds_port(4000);
    s.starts(1);
    s.comes_up(1, 0);
    CHECK(s.ends(1, 0, exited(1)) == "report Failed g1 a [a/0: exit code 1]");
    // It comes up nevertheless; its supervisor's order to end waits for it.
    CHECK(s.comes_up(1, 1) == "");
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) ==
          lines("report Failed g1 a [a/0: exit code 1] ended", "sweep"));
  }

  TEST_CASE("a worker that cannot be started is a failure before the start") {
    agent_story s("b");
    s.prepares(1);
    s.starts(1);
    exit_report why;
    why.message = "no such program";
    why.unix_time_ms = 5;
    const auto effects = s.end_of(1, 0, exited(1), why, true);
    CHECK(text(effects) == "report Failed g1 b [b/0: no such program]");
    for (const auto& e : effects)
      if (const auto* r = std::get_if<agent_core::report>(&e)) {
        auto f = r->message.as<messages::Failed>().read()->getFailures()[0];
        CHECK(f.getBeforeStart());
        CHECK(f.getPid() == 0);
        CHECK(f.getRank() == 2);
        CHECK(f.getUnixTimeMs() == 5);
      }
  }

  TEST_CASE("when no worker can be started there is none to end") {
    agent_story s("b");
    s.prepares(1);
    s.starts(1);
    s.cannot_start(1, 0);
    CHECK(s.cannot_start(1, 1) ==
          lines("report Failed g1 b [b/0: no such program, b/1: no such program] ended", "sweep"));
    CHECK(s.cannot_start(1, 1) == "");
  }

  TEST_CASE("a generation whose supervisor could not be started has failed before the start") {
    agent_story s("b");
    s.prepares(1);
    s.starts(1);
    CHECK(text(s.core.generation_refused(s.now, generation{1}, "no supervisor", 5)) ==
          lines("report Failed g1 b [b/0: no supervisor]",
                "report Failed g1 b [b/0: no supervisor, b/1: no supervisor] ended", "sweep"));
    CHECK(s.is_swept() == "report Stopped g1 b [b/0: no supervisor, b/1: no supervisor]");
    CHECK(text(s.core.generation_refused(s.now, generation{1}, "no supervisor", 5)) == "");
  }

  TEST_CASE("workers that end without a word, with a supervisor that crashed, have failed") {
    auto s = one_that_runs();
    CHECK(text(s.core.generation_ended(s.now, generation{2}, 0)) == "");
    const std::string gone = "the actor that owned it has ended";
    CHECK(text(s.core.generation_ended(s.now, generation{1}, 0)) ==
          lines("report Failed g1 a [a/0: " + gone + "]",
                "report Failed g1 a [a/0: " + gone + ", a/1: " + gone + "] ended", "sweep"));
    CHECK(text(s.core.generation_ended(s.now, generation{1}, 0)) == "");
  }

  TEST_CASE("ends of workers of other generations, or of none, are not this one's") {
    auto s = one_that_runs(2);
    CHECK(s.ends(1, 0, exited(1)) == "");
    CHECK(s.ends(3, 0, exited(1)) == "");
    CHECK(s.ends(2, 2, exited(1)) == "");
    CHECK(s.cannot_start(1, 0) == "");
    CHECK(s.comes_up(2, 2) == "");
    CHECK(s.core.current_phase() == phase::running);
  }

  TEST_CASE("a worker ends once") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(0));
    CHECK(s.ends(1, 0, exited(1)) == "");
    CHECK(s.ends(1, 1, exited(0)) == "report Finished g1 a");
  }

  TEST_CASE("one that succeeded does not make up for one that failed") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(0));
    CHECK(s.ends(1, 1, killed_by(SIGKILL)) ==
          lines("report Failed g1 a [a/1: signal 9 (SIGKILL)] ended", "sweep"));
  }
}

TEST_SUITE("agent_core: the next generation") {
  TEST_CASE("ready only when the older processes are gone, and what they left behind") {
    auto s = one_that_runs();
    CHECK(s.prepares(2) == end_both);
    CHECK(s.state() == "NodeState draining g2");
    CHECK(s.ends(1, 0, killed_by(SIGTERM)) == "");
    CHECK(s.ends(1, 1, killed_by(SIGKILL)) == "sweep");
    CHECK(s.state() == "NodeState draining g2");
    CHECK(s.is_swept(3) == lines("close_store", "report Stopped g1 a", "open_store"));
    CHECK(s.finds_port(4001) == "report Prepared g2 a port 4001");
  }

  TEST_CASE("after a failure it is the same, but the siblings have been asked already") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(1));
    CHECK(s.prepares(2) == end_both);
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() ==
          lines("close_store", "report Stopped g1 a [a/0: exit code 1]", "open_store"));
    // The failure was of generation 1.
    CHECK(s.finds_port(4001) == "report Prepared g2 a port 4001");
    CHECK(s.state() == "NodeState ready g2 port 4001");
  }

  TEST_CASE("a sweep that was begun is not begun again") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(1));
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) ==
          lines("report Failed g1 a [a/0: exit code 1] ended", "sweep"));
    CHECK(s.prepares(2) == "");
    CHECK(s.prepares(3) == "");
    CHECK(s.stops(3) == "");
    CHECK(s.prepares(4) == "");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a [a/0: exit code 1]",
                                "report Stopped g3 a", "open_store"));
    CHECK(s.finds_port(4001) == "report Prepared g4 a port 4001");
  }

  TEST_CASE("what is swept once is clean: nothing started since, nothing to sweep") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(1));
    s.ends(1, 1, killed_by(SIGTERM));
    s.is_swept();
    CHECK(s.prepares(2) == lines("close_store", "open_store"));
  }

  TEST_CASE("prepare while draining: the newest wins") {
    auto s = one_that_runs();
    s.stops(1);
    CHECK(s.prepares(2) == "");
    CHECK(s.prepares(3) == "");
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    s.is_swept();
    CHECK(s.finds_port(4001) == "report Prepared g3 a port 4001");
    CHECK(s.starts(2) == "");
    CHECK(s.starts(3) != "");
  }

  TEST_CASE("its place may be another one in the next world") {
    auto s = one_that_runs();
    s.prepares(2, {"b", "a"});
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a", "report Prepared g2 a"));
    CHECK(s.starts(2).find("start 0: g2 rank 2 of 4, node 1 of 2") == 0);
  }

  TEST_CASE("a worker that ends badly while it is being ended has not failed") {
    auto s = one_that_runs();
    s.stops(1);
    CHECK(s.ends(1, 0, exited(1)) == "");
    CHECK(s.ends(1, 1, exited(1)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a"));
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("after its own crash an agent sweeps before it is ready: it left processes behind") {
    agent_core fresh(agent_options{"b", 2, 30s}, messages::author("b/agent"), true);
    CHECK(text(fresh.prepare(dawn, prepare(7, {"a", "b"}, "b"))) == "sweep");
    CHECK(text(fresh.swept(dawn, {2, 0})) == "report Prepared g7 b");
  }
}

TEST_SUITE("agent_core: stopping") {
  TEST_CASE("stopped while running: processes end, then it waits") {
    auto s = one_that_runs();
    CHECK(s.stops(1) == end_both);
    CHECK(s.stops(1) == "");
    s.ends(1, 0, killed_by(SIGTERM));
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a"));
    CHECK(s.core.in_words() == "waiting for the master");
    CHECK(s.stops(1) == "report Stopped g1 a");
  }

  TEST_CASE("stopped while ready: a Start that comes later does nothing") {
    agent_story s("b");
    s.prepares(1);
    CHECK(s.stops(1) == "report Stopped g1 b");
    CHECK(s.starts(1) == "");
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("stopped, or sent on, while its store opens: that store is of no use any more") {
    agent_story s;
    s.prepares(1);
    CHECK(s.core.awaits_store(generation{1}));
    CHECK(s.prepares(2) == lines("close_store", "open_store"));
    CHECK_FALSE(s.core.awaits_store(generation{1}));
    CHECK(s.finds_port(1, 4000) == "");
    CHECK(s.stops(2) == lines("close_store", "report Stopped g2 a"));
    CHECK_FALSE(s.core.awaits_store(generation{2}));
    CHECK(s.finds_port(2, 4001) == "");
  }

  TEST_CASE("stopped after it failed or finished: only the sweep is left to do") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    CHECK(s.stops(1) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a"));
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("stopped while it drains for this very generation: it does not get ready for it") {
    auto s = one_that_runs();
    s.prepares(2);
    CHECK(s.stops(2) == "");
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a", "report Stopped g2 a"));
    CHECK(s.state() == "NodeState idle g2");
  }

  TEST_CASE("every Stop is answered when nothing of its generation or an older one is left") {
    agent_story s("b");
    CHECK(s.stops(7) == "report Stopped g7 b"); // never heard of
    CHECK(s.stops(7) == "report Stopped g7 b");
    CHECK(s.stops(3) == "report Stopped g3 b");
    s.runs(8);
    CHECK(s.stops(7) == "report Stopped g7 b"); // what runs is newer
    CHECK(s.state() == "NodeState running g8");
  }

  TEST_CASE("a Stop for a generation that the node has not heard of ends the older one that runs") {
    auto s = one_that_runs(2);
    CHECK(s.stops(3) == "stop g2: signal 15 within 30.0 s");
    CHECK(s.stops(2) == "");
    s.ends(2, 0, killed_by(SIGTERM));
    CHECK(s.ends(2, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g2 a", "report Stopped g3 a"));
    CHECK(s.state() == "NodeState idle g3");
  }

  TEST_CASE("an agent that may have lost processes answers a Stop only after a sweep") {
    agent_core fresh(agent_options{"b", 2, 30s}, messages::author("b/agent"), true);
    CHECK(text(fresh.stop(dawn, stop(7))) == "sweep");
    CHECK(text(fresh.stop(dawn, stop(7))) == "");
    CHECK(text(fresh.swept(dawn, {2, 0})) == "report Stopped g7 b");
  }

  TEST_CASE("a node that leaves the job answers as well, and says no more than it is asked") {
    auto s = one_that_runs();
    s.concludes(true);
    CHECK(s.stops(1) == "");
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a", "report Goodbye: because",
                                "node_over success by verdict: because"));
    CHECK(s.stops(1) == "");
  }
}

TEST_SUITE("agent_core: the order of failures") {
  TEST_CASE("a process that our signal ended is never first while another failed by itself") {
    auto s = one_that_runs();
    exit_report late = {"ValueError", {}, "b.json", 0, 5ms, false, {}};
    s.ends(1, 0, exited(1), late);
    s.now += 10ms;
    // Its error file is the older one, but its interpreter was still ending when it was signalled.
    exit_report early = {"KeyError", {}, "a.json", 0, 20ms, false, {}};
    s.ends(1, 1, killed_by(SIGTERM), early);
    const auto state = s.core.state(s.now);
    auto view = state.read();
    REQUIRE(view->getFailures().size() == 2);
    CHECK(view->getFailures()[0].getMessage() == "ValueError");
    CHECK_FALSE(view->getFailures()[0].getStopped());
    CHECK(view->getFailures()[1].getMessage() == "KeyError");
    CHECK(view->getFailures()[1].getStopped());
  }

  TEST_CASE("else the oldest is first, whichever process ended first") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(1), {"late", {}, "b.json", 0, 5ms, false, {}});
    s.ends(1, 1, exited(1), {"early", {}, "a.json", 0, 9ms, false, {}});
    CHECK(s.state() == "NodeState failed g1 [a/1: early, a/0: late]");
  }
}
