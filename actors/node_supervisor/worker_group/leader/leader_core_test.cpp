#include "runtime/base/limits.hpp"
#include "tests/actors/leader_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = leader_core::phase;

namespace {

const std::string end_both =
    lines("end 0: signal 15 within 30.0 s", "end 1: signal 15 within 30.0 s");

leader_story one_that_runs(std::uint64_t g = 1) {
  leader_story s;
  s.runs(g);
  REQUIRE(s.core.current_phase() == phase::running);
  return s;
}

} // namespace

TEST_SUITE("leader_core: a generation that goes well") {
  TEST_CASE("the node of group rank 0 finds a port before it says that it is ready") {
    leader_story s("a");
    CHECK(s.prepares(1) == "open_store");
    CHECK(s.finds_port(4000) == "report Prepared g1 a port 4000");
    CHECK(s.state() == "NodeState ready g1 port 4000");
  }

  TEST_CASE("the others are ready at once") {
    leader_story s("b");
    CHECK(s.prepares(1) == "report Prepared g1 b");
  }

  TEST_CASE("where all workers are on this node, the store is for this machine only") {
    leader_story s;
    CHECK(s.prepares(1, {"a"}) == "open_store for this machine");
  }

  TEST_CASE("a store that nobody came to use is closed as well") {
    leader_story s;
    s.prepares(1);
    s.finds_port(4000);
    CHECK(s.prepares(2) == lines("close_store", "open_store"));
    s.finds_port(4000);
    CHECK(s.stops(2) == "close_store");
    CHECK(s.state() == "NodeState idle g2");
  }

  TEST_CASE("where rank 0's worker hosts the store, a port is all that is looked for") {
    leader_core core(leader_options{"a", 2, 30s, {}, false}, messages::author("a/leader"));
    CHECK(text(core.prepare(dawn, prepare(1, {"a", "b"}))) == "pick_port");
    CHECK(text(core.store_placed(dawn, 4000)) == "report Prepared g1 a port 4000 for its worker");
    CHECK(text(core.stop(dawn, stop(1))) == "");
  }

  TEST_CASE("a node that finds no port says so") {
    leader_story s("a");
    s.prepares(1);
    CHECK(s.finds_port(0) == "report Prepared g1 a");
  }

  TEST_CASE("started: every local rank knows its place, and Running is said when all are up") {
    leader_story s("b");
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
    leader_story s("b");
    s.prepares(1);
    CHECK(s.prepares(1) == "report Prepared g1 b");
    s.starts(1);
    CHECK(s.starts(1) == "");
    CHECK(s.prepares(1) == "");
    CHECK(s.core.current_phase() == phase::running);
  }

  TEST_CASE("directives of another generation than the one it is ready for do nothing") {
    leader_story s("b");
    CHECK(s.starts(1) == "");
    s.prepares(2);
    CHECK(s.starts(1) == "");
    CHECK(s.starts(3) == "");
    CHECK(s.stops(1) == "");
    CHECK(s.prepares(1) == "");
    CHECK(s.core.current_phase() == phase::ready);
    CHECK(s.core.current() == generation{2});
  }
}

TEST_SUITE("leader_core: failures") {
  TEST_CASE("one worker fails: told at once, the siblings end, then what they left is swept") {
    auto s = one_that_runs();
    CHECK(s.ends(1, 0, exited(7)) ==
          lines("report Failed g1 a [a/0: exit code 7]", "end 1: signal 15 within 30.0 s"));
    CHECK(s.state() == "NodeState failed g1 [a/0: exit code 7]");
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) ==
          lines("report Failed g1 a [a/0: exit code 7] ended", "sweep"));
    CHECK(s.is_swept() == "");
    CHECK(s.state() == "NodeState failed g1 [a/0: exit code 7]");
  }

  TEST_CASE("who dies of our signal has not failed, who fails by itself meanwhile has") {
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
    s.core.worker_ended(s.now, generation{1}, 0, exited(7),
                        {std::string(5'000, 'x'), "begin" + traceback + "end", "f", 5, 40ms});
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
    leader_core core(leader_options{"a", workers, 30s}, messages::author("a/leader"));
    core.prepare(dawn, prepare(1, {"b", "a"}));
    core.start(dawn, start(1));
    obituary why;
    why.log_tail = std::string(limits::log_tail_max, '.');
    for (local_rank r = 0; r < workers; ++r)
      core.worker_started(dawn, generation{1}, r, 100 + static_cast<int>(r));
    for (local_rank r = 0; r < workers; ++r)
      core.worker_ended(dawn, generation{1}, r, exited(7), why);
    const auto state = core.state(dawn);
    auto view = state.read();
    REQUIRE(view->getFailures().size() == workers);
    for (unsigned i = 0; i < workers; ++i)
      CHECK(view->getFailures()[i].getLogTail().size() == (i < 4 ? limits::log_tail_max : 0));
  }

  TEST_CASE("who had written its error file before our signal has failed, however it ends") {
    for (const bool before : {true, false}) {
      auto s = one_that_runs();
      s.ends(1, 0, exited(7));
      s.now += 10ms;
      const auto said = text(s.core.worker_ended(
          s.now, generation{1}, 1, killed_by(SIGTERM),
          {"ValueError", {}, "error.json", 0, before ? duration(11ms) : duration(9ms)}));
      CHECK((said.find("a/1: ValueError") != std::string::npos) == before);
    }
  }

  TEST_CASE("one worker fails while the others are starting") {
    leader_story s("a");
    s.prepares(1);
    s.finds_port(4000);
    s.starts(1);
    s.comes_up(1, 0);
    CHECK(s.ends(1, 0, exited(1)) ==
          lines("report Failed g1 a [a/0: exit code 1]", "end 1: signal 15 within 30.0 s"));
    // It comes up nevertheless; the order to end waits for it.
    CHECK(s.comes_up(1, 1) == "");
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) ==
          lines("report Failed g1 a [a/0: exit code 1] ended", "sweep"));
  }

  TEST_CASE("a worker that cannot be started is a failure before the start") {
    leader_story s("b");
    s.prepares(1);
    s.starts(1);
    const auto effects = s.core.worker_not_started(s.now, generation{1}, 0, "no such program", 5);
    CHECK(text(effects) ==
          lines("report Failed g1 b [b/0: no such program]", "end 1: signal 15 within 30.0 s"));
    for (const auto& e : effects)
      if (const auto* r = std::get_if<leader_core::report>(&e)) {
        auto f = r->message.as<messages::Failed>().read()->getFailures()[0];
        CHECK(f.getBeforeStart());
        CHECK(f.getPid() == 0);
        CHECK(f.getRank() == 2);
        CHECK(f.getUnixTimeMs() == 5);
      }
  }

  TEST_CASE("when none can be started there is nobody to end") {
    leader_story s("b");
    s.prepares(1);
    s.starts(1);
    s.cannot_start(1, 0);
    CHECK(s.cannot_start(1, 1) ==
          lines("report Failed g1 b [b/0: no such program, b/1: no such program] ended", "sweep"));
    CHECK(s.cannot_start(1, 1) == "");
  }

  TEST_CASE("a worker that was given up as not started and comes up after all is killed") {
    leader_story s("b");
    s.prepares(1);
    s.starts(1);
    s.cannot_start(1, 0);
    CHECK(s.comes_up(1, 0) == "end 0: signal 9 within 5.0 s");
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

TEST_SUITE("leader_core: the next generation") {
  TEST_CASE("ready only when the older processes are gone, and what they left behind") {
    auto s = one_that_runs();
    CHECK(s.prepares(2) == end_both);
    CHECK(s.state() == "NodeState draining g2");
    CHECK(s.ends(1, 0, killed_by(SIGTERM)) == "");
    CHECK(s.ends(1, 1, killed_by(SIGKILL)) == "sweep");
    CHECK(s.state() == "NodeState draining g2");
    CHECK(s.is_swept(3) == lines("close_store", "open_store"));
    CHECK(s.finds_port(4001) == "report Prepared g2 a port 4001");
  }

  TEST_CASE("after a failure it is the same, but the siblings have been asked already") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(1));
    CHECK(s.prepares(2) == "end 1: signal 15 within 30.0 s");
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "open_store"));
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
    CHECK(s.is_swept() == lines("close_store", "open_store"));
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
    CHECK(s.is_swept() == lines("close_store", "report Prepared g2 a"));
    CHECK(s.starts(2).find("start 0: g2 rank 2 of 4, node 1 of 2") == 0);
  }

  TEST_CASE("a worker that ends badly while it is being ended has not failed") {
    auto s = one_that_runs();
    s.stops(1);
    CHECK(s.ends(1, 0, exited(1)) == "");
    CHECK(s.ends(1, 1, exited(1)) == "sweep");
    CHECK(s.is_swept() == "close_store");
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("after its own crash a leader sweeps before it is ready: it left processes behind") {
    leader_core fresh(leader_options{"b", 2, 30s}, messages::author("b/leader"), true);
    CHECK(text(fresh.prepare(dawn, prepare(7, {"a", "b"}))) == "sweep");
    CHECK(text(fresh.swept(dawn, 2)) == "report Prepared g7 b");
  }
}

TEST_SUITE("leader_core: stopping") {
  TEST_CASE("stopped while running: processes end, then it waits") {
    auto s = one_that_runs();
    CHECK(s.stops(1) == end_both);
    CHECK(s.stops(1) == "");
    s.ends(1, 0, killed_by(SIGTERM));
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() == "close_store");
    CHECK(s.core.in_words() == "waiting for the master");
    CHECK(s.stops(1) == "");
  }

  TEST_CASE("stopped while ready: a Start that comes later does nothing") {
    leader_story s("b");
    s.prepares(1);
    CHECK(s.stops(1) == "");
    CHECK(s.starts(1) == "");
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("stopped while it looks for a port: what it finds is of no use any more") {
    leader_story s("a");
    s.prepares(1);
    CHECK(s.stops(1) == "");
    CHECK(s.finds_port(4000) == "");
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("stopped after it failed or finished: only the sweep is left to do") {
    auto s = one_that_runs();
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    CHECK(s.stops(1) == "sweep");
    CHECK(s.is_swept() == "close_store");
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("stopped while it drains for this very generation: it does not get ready for it") {
    auto s = one_that_runs();
    s.prepares(2);
    CHECK(s.stops(2) == "");
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() == "close_store");
    CHECK(s.state() == "NodeState idle g2");
  }
}
