#include "actors/limits.hpp"
#include "tests/actors/agent_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = agent_core::phase;

namespace {

const std::string by_success =
    lines("report Goodbye: because", "node_over success by verdict: because");
const std::string by_failure =
    lines("report Goodbye: because", "node_over failure by verdict: because");

} // namespace

/// Processes below a worker are part of it until they had their time.
TEST_SUITE("agent_core: what workers leave behind") {
  TEST_CASE("has the rest of the time that they had") {
    agent_story s;
    s.runs(1);
    s.stops(1);
    s.now += 12s;
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.last_sweep.quiet == 0s);
    CHECK(s.last_sweep.within == 18s);
  }

  TEST_CASE("after a failure, too; and it has a moment if they needed all of it") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(1));
    s.now += 10s;
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.last_sweep.within == 20s);
    agent_story late;
    late.runs(1);
    late.ends(1, 0, exited(1));
    late.now += 31s;
    late.ends(1, 1, killed_by(SIGKILL));
    CHECK(late.last_sweep.within == limits::left_behind_least);
  }

  TEST_CASE("at the end of a job that succeeded it may finish first, from when its workers ended") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    s.now += 12s;
    CHECK(s.concludes(true) == "sweep");
    CHECK(s.last_sweep.quiet == 18s);
    CHECK(s.last_sweep.within == 18s + limits::left_behind_asked);
  }

  TEST_CASE("of workers that have finished it has ended before their node stands by") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    CHECK(s.stands_by() == "sweep");
    CHECK(s.stands_by() == "");
    CHECK(s.is_swept() == "close_store");
    CHECK(s.prepares(2) != "");
  }

  TEST_CASE("a restart, or a user who wants an end, does not wait for it to finish") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    s.now += 12s;
    CHECK(s.stops(1) == "sweep");
    CHECK(s.last_sweep.quiet == 0s);
    CHECK(s.last_sweep.within == 30s);
    agent_story t;
    t.runs(1);
    t.ends(1, 0, exited(0));
    t.ends(1, 1, exited(0));
    CHECK(t.is_interrupted(SIGTERM) == "sweep");
    CHECK(t.last_sweep.quiet == 0s);
  }

  TEST_CASE("is told of when it is waited for, and counted when it is gone") {
    agent_story s;
    s.runs(1);
    s.stops(1);
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(notes(s.core.left_behind(s.now, {"sh (pid 7)", 1, 0s, 29s})) ==
          "waiting for 1 process the workers have left behind, sh (pid 7): asked to end, it is "
          "killed in 29 s (--shutdown-timeout)");
    CHECK(notes(s.core.left_behind(s.now, {"sh (pid 7), b (pid 8)", 2, 9s, 14s})) ==
          "waiting for 2 processes the workers have left behind, sh (pid 7), b (pid 8): they have "
          "9 s more to finish (--shutdown-timeout), then they are asked to end");
    CHECK(notes(s.core.swept(s.now, {1, 2})) ==
          lines("killed 1 process the workers had left behind",
                "ended 2 processes the workers had left behind",
                "the processes of generation 1 are gone, 0 µs after the first signal"));
  }
}

/// How a node leaves the job: by verdict, by the user's signal, or for want of a master.
TEST_SUITE("agent_core: leaving") {
  TEST_CASE("concluded while running: processes end first, then goodbye is said") {
    agent_story s;
    s.runs(1);
    CHECK(s.concludes(false) == "stop g1: signal 15 within 30.0 s");
    s.ends(1, 0, killed_by(SIGTERM));
    CHECK(s.ends(1, 1, exited(3)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "save_newest", by_failure));
  }

  TEST_CASE("given up by the master: what is in its memory goes to the disk before goodbye") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(1));
    s.ends(1, 1, killed_by(SIGTERM));
    s.is_swept();
    s.stops(1);
    CHECK(s.is_told_to_leave(1, "a") ==
          lines("save_newest", "report Goodbye: this node leaves the job: its restarts are used up",
                "node_over failure: this node leaves the job: its restarts are used up"));
    CHECK(s.is_told_to_leave(1, "a") == "");
    CHECK(s.prepares(2) == "");
  }

  TEST_CASE("another node is given up: the part of this one in its last steps goes to the disk") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(1));
    s.ends(1, 1, killed_by(SIGTERM));
    s.is_swept();
    s.stops(1);
    CHECK(s.is_told_to_leave(1, "b") == "save_newest");
    CHECK(s.prepares(2) != "");
  }

  TEST_CASE("a node that has come under the name is not meant") {
    agent_story s;
    CHECK(s.is_told_to_leave(7, "a") == "");
    CHECK(s.prepares(8) != "");
  }

  TEST_CASE("concluded while draining or sweeping: it goes when that is done") {
    agent_story s;
    s.runs(1);
    s.prepares(2);
    s.ends(1, 0, killed_by(SIGTERM));
    CHECK(s.concludes(true) == "stop g1: signal 15 within 30.0 s");
    CHECK(s.ends(1, 1, killed_by(SIGTERM)) == "sweep");
    CHECK(s.is_swept() == lines("close_store", by_success));

    agent_story t;
    t.runs(1);
    t.ends(1, 0, exited(1));
    t.ends(1, 1, killed_by(SIGTERM));
    t.prepares(2);
    CHECK(t.concludes(false) == "");
    CHECK(t.is_swept() == lines("close_store", "save_newest", by_failure));
  }

  TEST_CASE("concluded while nothing runs: it goes at once") {
    agent_story s;
    CHECK(s.concludes(true) == by_success);
    agent_story ready("b");
    ready.prepares(1);
    CHECK(ready.concludes(true) == by_success);
  }

  TEST_CASE(
      "the user's signal is passed on as it is, and the node says goodbye when all are gone") {
    agent_story s;
    s.runs(1);
    CHECK(s.is_interrupted(SIGINT) == "stop g1: signal 2 within 30.0 s");
    CHECK(s.ends(1, 0, exited(1)) == "");
    CHECK(s.ends(1, 1, killed_by(SIGINT)) == "sweep");
    CHECK(s.is_swept() == lines("close_store",
                                "report Goodbye: the launcher received signal 2 (SIGINT)",
                                "node_over failure: the launcher received signal 2 (SIGINT)"));
  }

  TEST_CASE("after a verdict of failure what still fails by itself is told to this node's user") {
    agent_story s;
    s.runs(1);
    s.ends(1, 0, exited(7));
    s.concludes(false);
    CHECK(s.ends(1, 1, exited(9)) == "sweep");
    s.core.swept(s.now, {});
    const auto over = s.core.drained(s.now, generation{1}, std::nullopt);
    const auto* end = std::get_if<agent_core::node_over>(&over.back());
    REQUIRE(end);
    REQUIRE(end->outcome.failures);
    CHECK(end->outcome.failures->read()->getFailures().size() == 2);
  }

  TEST_CASE("after another end nothing that ends has failed") {
    agent_story s;
    s.runs(1);
    s.concludes(true);
    s.ends(1, 0, exited(9));
    s.ends(1, 1, exited(9));
    const auto over = s.core.swept(s.now, {});
    CHECK_FALSE(std::get<agent_core::node_over>(over.back()).outcome.failures);
  }

  TEST_CASE("a user who waits is told for what, and how long at most") {
    agent_story s;
    s.runs(1);
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(notes(s.core.interrupted(s.now, SIGINT, false)) ==
          "signal 2 (SIGINT): the job ends. Workers have 30 s to end; a second Ctrl-C kills them "
          "now");
    CHECK(notes(s.core.tick(s.now + 4s)) == "");
    s.now = *s.core.next_wakeup();
    CHECK(notes(s.core.tick(s.now)) ==
          "ranks 0, 1 have not ended; 25 s more at most, or now by a second Ctrl-C");
    s.ends(1, 0, killed_by(SIGINT));
    s.now = *s.core.next_wakeup();
    CHECK(notes(s.core.tick(s.now)) ==
          "rank 1 has not ended; 20 s more at most, or now by a second Ctrl-C");
    CHECK(notes(s.core.interrupted(s.now, SIGINT, false)) ==
          "signal 2 (SIGINT): killing the workers");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("the countdown ends before the time does, however long that is") {
    agent_story s(agent_options{"a", 2, 600s});
    s.runs(1);
    s.is_interrupted(SIGTERM);
    int lines_told = 0;
    while (s.core.next_wakeup()) {
      s.now = *s.core.next_wakeup();
      CHECK(notes(s.core.tick(s.now)).find("a second signal") != std::string::npos);
      ++lines_told;
    }
    CHECK(lines_told == 5);
  }

  TEST_CASE("where no worker runs there is nothing to wait for") {
    agent_story s;
    CHECK(notes(s.core.interrupted(s.now, SIGTERM, false)) ==
          "signal 15 (SIGTERM): the job ends. No worker runs here");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("a second signal kills at once") {
    agent_story s;
    s.runs(1);
    s.is_interrupted();
    s.ends(1, 0, killed_by(SIGINT));
    CHECK(s.is_interrupted() == "stop g1: signal 9 within 5.0 s");
    CHECK(s.is_interrupted() == "stop g1: signal 9 within 5.0 s");
  }

  TEST_CASE("a signal for the workers only is passed on to those that live, and nothing ends") {
    agent_story s;
    CHECK(s.hears_signal(SIGUSR1) == "");
    s.runs(1);
    CHECK(s.hears_signal(SIGUSR1) == lines("pass on 0: signal 10", "pass on 1: signal 10"));
    s.ends(1, 0, exited(0));
    CHECK(s.hears_signal(SIGUSR2) == "pass on 1: signal 12");
    CHECK(s.state() == "NodeState running g1");
    s.is_interrupted();
    CHECK(s.hears_signal(SIGUSR1) == "");
  }

  TEST_CASE("a worker that is being started hears such a signal once it runs, and each only once") {
    agent_story s("b");
    s.prepares(1);
    s.starts(1);
    s.comes_up(1, 0);
    CHECK(s.hears_signal(SIGUSR1) == "pass on 0: signal 10");
    CHECK(s.hears_signal(SIGUSR1) == "pass on 0: signal 10");
    CHECK(s.comes_up(1, 1) == lines("pass on 1: signal 10", "report Running g1 b"));
    CHECK(s.hears_signal(SIGUSR2) == lines("pass on 0: signal 12", "pass on 1: signal 12"));
  }

  TEST_CASE("the first one cuts nothing short, though the node is on its way out by the verdict") {
    agent_story s;
    s.saves_at_once = false;
    s.runs(1);
    s.concludes(false);
    s.now += 10s;
    CHECK(notes(s.core.interrupted(s.now, SIGTERM, false)) ==
          "signal 15 (SIGTERM): the job is over, and ranks 0, 1 have not ended; 20 s more at most, "
          "or now by a second signal");
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() == lines("close_store", "save_newest", "drain g1"));
    // The second one does.
    CHECK(s.is_interrupted(SIGTERM).find("node_over failure") != std::string::npos);

    agent_story saving;
    saving.saves_at_once = false;
    saving.runs(1);
    saving.concludes(false);
    saving.ends(1, 0, killed_by(SIGTERM));
    saving.ends(1, 1, killed_by(SIGTERM));
    saving.is_swept();
    CHECK(notes(saving.core.tick(saving.now + 2s)) ==
          "the last checkpoints are not on the disk yet; 118 s more at most, or now by a second "
          "signal");
    CHECK(saving.is_interrupted() == "");
    CHECK(saving.is_interrupted().find("node_over failure") != std::string::npos);
  }

  TEST_CASE("without a master the node ends its processes and goes") {
    agent_story s;
    s.runs(1);
    CHECK(s.gives_up() == "stop g1: signal 15 within 30.0 s");
    CHECK(s.gives_up() == "");
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() ==
          lines("close_store", "report Goodbye: no master", "node_over failure: no master"));
  }

  TEST_CASE("interrupted while it looks for a port: what it finds is of no use any more") {
    agent_story s;
    s.prepares(1);
    CHECK(s.is_interrupted().find("node_over failure: ") != std::string::npos);
    CHECK(s.finds_port(4000) == "");
  }

  TEST_CASE("once it is leaving no directive changes that") {
    agent_story s;
    s.runs(1);
    s.is_interrupted();
    CHECK(s.prepares(2) == "");
    CHECK(s.starts(1) == "");
    CHECK(s.stops(1) == "");
    CHECK(s.concludes(true) == "");
    CHECK(s.state() == "NodeState draining g1");
  }

  TEST_CASE("once it has left nothing happens any more") {
    agent_story s;
    s.concludes(true);
    CHECK(s.prepares(1) == "");
    CHECK(s.stops(0) == "");
    CHECK(s.is_interrupted() == "");
    CHECK(s.gives_up() == "");
    CHECK(s.is_swept() == "");
    CHECK(s.core.current_phase() == phase::over);
    CHECK(s.state() == "NodeState idle g0");
  }

  TEST_CASE("what people read: how long the end took, and how many processes had to be swept") {
    agent_story s;
    s.runs(1);
    s.stops(1);
    s.now += 250ms;
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(notes(s.core.swept(s.now, {2, 0})) ==
          lines("killed 2 processes the workers had left behind",
                "the processes of generation 1 are gone, 250 ms after the first signal"));
  }
}

/// The last checkpoint is complete before the node says that it has finished.
TEST_SUITE("agent_core: saving") {
  TEST_CASE("a node has finished when what its processes wanted saved is finalized") {
    agent_story s;
    s.saves_at_once = false;
    s.runs(1);
    s.ends(1, 0, exited(0));
    CHECK(s.ends(1, 1, exited(0)) == "drain g1");
    CHECK(s.state() == "NodeState running g1");
    CHECK(s.is_drained(0) == "");
    CHECK(s.is_drained(1) == "report Finished g1 a");
    CHECK(s.is_drained(1) == "");
  }

  TEST_CASE("a saver that does not answer is asked again, and then not waited for") {
    agent_story s;
    s.saves_at_once = false;
    s.runs(1);
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    for (unsigned i = 1; i < limits::drain_tries_max; ++i)
      CHECK(s.is_drained(1, error{errc::closed, "it has ended"}) == "drain g1 after 200 ms");
    CHECK(s.is_drained(1, error{errc::closed, "it has ended"}) == "report Finished g1 a");
    CHECK(s.said.find("it is not known whether the last checkpoints are complete: it has ended") ==
          0);
  }

  TEST_CASE("a generation that is stopped, or followed by another, waits no more") {
    agent_story s;
    s.saves_at_once = false;
    s.runs(1);
    s.ends(1, 0, exited(0));
    s.ends(1, 1, exited(0));
    CHECK(s.stops(1) == "sweep");
    CHECK(s.is_swept() == lines("close_store", "report Stopped g1 a"));
    CHECK(s.is_drained(1) == "");
    CHECK(s.state() == "NodeState idle g1");
  }

  TEST_CASE("a node that leaves a job that failed waits for its last saves, but not twice") {
    agent_story s;
    s.saves_at_once = false;
    s.runs(1);
    s.concludes(false);
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept() == lines("close_store", "save_newest", "drain g1"));
    CHECK(s.is_drained(1, error{errc::unavailable, "no answer"}) == by_failure);

    agent_story hurried;
    hurried.saves_at_once = false;
    hurried.runs(1);
    hurried.is_interrupted();
    hurried.ends(1, 0, killed_by(SIGINT));
    hurried.ends(1, 1, killed_by(SIGINT));
    CHECK(hurried.is_swept() == lines("close_store", "drain g1"));
    CHECK(hurried.is_interrupted().find("node_over failure") != std::string::npos);
  }

  TEST_CASE("without a master no step can be completed: it is not waited for") {
    agent_story s;
    s.saves_at_once = false;
    s.runs(1);
    s.gives_up();
    s.ends(1, 0, killed_by(SIGTERM));
    s.ends(1, 1, killed_by(SIGTERM));
    CHECK(s.is_swept().find("node_over failure") != std::string::npos);
  }

  TEST_CASE("what is in memory alone is written when the job ends, as nothing goes on from it") {
    const auto leaves = [](agent_story& s, int with) {
      s.ends(1, 0, killed_by(with));
      s.ends(1, 1, killed_by(with));
      return s.is_swept();
    };
    const auto newest = lines("close_store", "save_newest", "drain g1");
    const auto wanted_alone = lines("close_store", "drain g1");
    agent_story user;
    user.saves_at_once = false;
    user.runs(1);
    CHECK(user.is_interrupted(SIGINT, true) == "stop g1: signal 2 within 30.0 s");
    CHECK(leaves(user, SIGINT) == newest);

    // The others train on, from what they have.
    agent_story alone;
    alone.saves_at_once = false;
    alone.runs(1);
    alone.is_interrupted(SIGTERM);
    CHECK(leaves(alone, SIGTERM) == wanted_alone);
    // Until the job ends meanwhile.
    CHECK(alone.concludes(false) == "save_newest");
    CHECK(alone.is_drained(1).find("node_over failure") != std::string::npos);

    agent_story first;
    first.saves_at_once = false;
    first.runs(1);
    first.is_interrupted(SIGTERM);
    CHECK(first.concludes(false) == "");
    CHECK(leaves(first, SIGTERM) == newest);

    // A failure that the job survives.
    agent_story again;
    again.runs(1);
    CHECK(again.ends(1, 0, exited(1)).find("save_newest") == std::string::npos);
    CHECK(again.stops(1).find("save_newest") == std::string::npos);
  }

  TEST_CASE("at a breakpoint what is in memory is wanted once, before the processes end") {
    agent_options options{"a", 2, 30s};
    options.save_at_breakpoint = true;
    agent_story failing(options);
    failing.runs(1);
    CHECK(failing.ends(1, 0, exited(1)).find("save_newest") != std::string::npos);
    CHECK(failing.stops(1).find("save_newest") == std::string::npos);

    agent_story stopped(options);
    stopped.runs(1);
    CHECK(stopped.stops(1).find("save_newest") == 0);

    agent_story interrupted(options);
    interrupted.runs(1);
    CHECK(interrupted.is_interrupted().find("save_newest") == 0);
  }
}
