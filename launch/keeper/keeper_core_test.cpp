#include "launch/keeper/testing/keeper_story.hpp"

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

TEST_SUITE("keeper_core") {
  TEST_CASE("the end of a process is told to its supervisor, once") {
    story s;
    s.runs(1, 101);
    CHECK(s.ends(101, {false, 7}) == "1 ended with 7");
    CHECK(s.ends(101, {false, 7}) == "");
  }

  TEST_CASE("a signal goes to the group of a process that lives, and nowhere once it has ended") {
    story s;
    s.runs(1, 101);
    CHECK(s.signals(1, SIGKILL) == "kill group 101 with 9");
    CHECK(s.signals(2, SIGTERM) == "");
    s.ends(101, killed);
    CHECK(s.signals(1, SIGTERM) == "");
  }

  TEST_CASE("a stopped process is continued for a signal that is to end it, and for no other") {
    story s;
    s.runs(1, 101);
    CHECK(s.signals(1, SIGTERM) == "kill group 101 with 15, kill group 101 with 18");
    CHECK(s.signals(1, SIGINT) == "kill group 101 with 2, kill group 101 with 18");
    CHECK(s.signals(1, SIGUSR1) == "kill group 101 with 10");
  }

  TEST_CASE("the exit code is what the supervisor says, not how it ends") {
    story s;
    s.says<SupervisorOver>([](auto b) { b.setExitCode(3); });
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
    CHECK(s.adopts(1) == "");
    CHECK(s.adopts(2) == "2 ended with 0");
    CHECK(s.ends(101, killed) == "1 ended with signal 9");
  }

  TEST_CASE("an end that the predecessor was told, and did not live to act on, is told again") {
    story s;
    s.runs(1, 101);
    CHECK(s.ends(101, {false, 7}) == "1 ended with 7");
    s.crash();
    CHECK(s.supervisor(200) == "present 1 (pid 101, label 71), presented, life 1");
    CHECK(s.adopts(1) == "1 ended with 7");
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

  TEST_CASE("a supervisor that always crashes is given up, on a slow machine as well") {
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

  TEST_CASE("a supervisor that worked for a while before it crashed is started again at once") {
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
    CHECK(s.wants_store(5) == "start store 5");
    s.core.store_started(s.now, story::store(5), 105);
    CHECK(s.signals(5, SIGKILL) == "kill group 105 with 9");
    CHECK(s.wants_store(6) == "");
    CHECK(s.ends(105, killed) == "5 ended with signal 9, start store 6");
  }

  TEST_CASE("a supervisor that the system does not fork is tried again, and said once") {
    story s;
    s.runs(1, 101);
    CHECK(s.crash() == "start supervisor");
    CHECK(s.refused() == "say: the node supervisor cannot be started: EAGAIN; trying again for "
                         "60.0 s, while the workers train on");
    std::string delays;
    for (int i = 0; i < 8; ++i) {
      const instant from = s.now;
      CHECK(s.waits() == "start supervisor");
      delays += in_words(s.now - from) + " ";
      CHECK(s.refused() == "");
    }
    CHECK(delays == "100 ms 200 ms 400 ms 800 ms 1.6 s 3.2 s 5.0 s 5.0 s ");
    CHECK(s.ends(101, {false, 7}) == "");
    CHECK(s.supervisor(200) == "present 1 (pid 101, label 71), presented, life 1");
    CHECK(s.adopts(1) == "1 ended with 7");
    // A later refusal is another one.
    s.passes(limits::supervisor_works_after);
    CHECK(s.crash() == "start supervisor");
    CHECK(s.refused() ==
          "say: the node supervisor cannot be started: EAGAIN; trying again for 60.0 s");
    CHECK(s.waits() == "start supervisor");
  }

  TEST_CASE("a system that forks no supervisor for a minute ends the job on this node") {
    story s;
    s.crash();
    auto what = s.refused();
    for (int i = 0; i < 100 && !s.core.finished(); ++i) {
      CHECK(s.waits() == "start supervisor");
      what = s.refused();
    }
    CHECK(what == "finish 1: the node supervisor could not be started within 60.0 s: EAGAIN; "
                  "giving up");
    CHECK(s.now - instant(1h) < limits::supervisor_fork_within + limits::fork_again_max + 1s);
  }

  TEST_CASE("a user who wants an end is not held up by a supervisor that cannot be started") {
    story s;
    SUBCASE("at once if no worker is there") {
      s.crash();
      s.refused();
      CHECK(text(s.core.user_signal(s.now, SIGTERM)).rfind("finish 1: ended as asked", 0) == 0);
    }
    SUBCASE("at the second wish if there is one, which a successor could end in order") {
      s.runs(1, 101);
      s.crash();
      s.refused();
      CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "");
      CHECK(text(s.core.user_signal(s.now, SIGTERM)).rfind("finish 1: ended as asked", 0) == 0);
    }
    SUBCASE("when the wish came before the refusal") {
      s.crash();
      CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "");
      CHECK(s.refused().rfind("finish 1: ended as asked", 0) == 0);
    }
  }

  TEST_CASE("a supervisor that says why it cannot go on is quoted, once") {
    story s;
    std::string all;
    for (std::size_t crash = 0; crash <= limits::supervisor_crashes_max; ++crash) {
      CHECK(s.says<SupervisorFailed>([](auto b) { b.setWhy("no threads"); }) == "");
      all += s.crash() + "; ";
      if (!s.core.finished() && s.core.next_wakeup())
        s.waits();
      s.supervisor(200);
    }
    const std::string first =
        "say: the node supervisor cannot go on: no threads; starting it again, start supervisor; ";
    CHECK(all.rfind(first, 0) == 0);
    CHECK(all.find("say:", first.size()) == std::string::npos);
    CHECK(all.find("the last time with no threads; giving up") != std::string::npos);
  }

  TEST_CASE("a store that the system does not fork is tried again, then refused") {
    story s;
    CHECK(s.wants_store(5) == "start store 5");
    CHECK(text(s.core.store_not_started(s.now, story::store(5), "EAGAIN")) == "");
    CHECK(s.waits() == "start store 5");
    SUBCASE("until it is there") {
      CHECK(text(s.core.store_started(s.now, story::store(5), 105)) == "");
      CHECK_FALSE(s.core.next_wakeup());
    }
    SUBCASE("until the supervisor waits no longer") {
      std::string what;
      while (what.empty()) {
        what = text(s.core.store_not_started(s.now, story::store(5), "EAGAIN"));
        if (what.empty())
          CHECK(s.waits() == "start store 5");
      }
      CHECK(what == "refuse store: the workers' store cannot be started: EAGAIN");
      CHECK(s.now - instant(1h) < limits::store_fork_within);
    }
  }

  TEST_CASE("the orphan reaper is there before the supervisor, and again when it has ended") {
    keeper_core core({SIGTERM}, {}, false, true);
    instant now(1h);
    CHECK(text(core.begin(now)) == "start orphan reaper, start supervisor");
    core.orphan_reaper_started(now, 50);
    core.supervisor_started(now, 100);
    now += limits::supervisor_works_after;
    CHECK(text(core.child_ended(now, 50, killed)) == "start orphan reaper");
    CHECK(text(core.orphan_reaper_not_started(now, "EAGAIN")) ==
          "say: the process that ends daemons when a launcher is killed cannot be started: EAGAIN; "
          "trying again");
    CHECK(core.next_wakeup() == now + limits::fork_again_first);
    now += limits::fork_again_first;
    CHECK(text(core.tick(now)) == "start orphan reaper");
    // One that ends at once is forked less and less often, until one has worked for a while.
    for (const int times : {2, 4, 8}) {
      core.orphan_reaper_started(now, 51);
      CHECK(text(core.child_ended(now, 51, killed)) == "");
      CHECK(core.next_wakeup() == now + times * limits::fork_again_first);
      now += times * limits::fork_again_first;
      CHECK(text(core.tick(now)) == "start orphan reaper");
    }
    core.orphan_reaper_started(now, 51);
    now += limits::supervisor_works_after;
    CHECK(text(core.child_ended(now, 51, killed)) == "start orphan reaper");
    core.orphan_reaper_started(now, 52);
    CHECK(text(core.child_ended(now, 52, killed)) == "");
    CHECK(core.next_wakeup() == now + limits::fork_again_first);
    now += limits::fork_again_first;
    CHECK(text(core.tick(now)) == "start orphan reaper");
    core.orphan_reaper_started(now, 52);
    // It is no stray.
    core.received(now, local<SweepWanted>("node_supervisor").any());
    CHECK(core.awaited() == std::vector<pid_t>{100, 52});
    CHECK(text(core.children(now, {}, false)) == "swept 0");
  }

  TEST_CASE("Ctrl-Z gives the terminal back and stops nothing") {
    story s;
    CHECK(text(s.core.stop_asked_for()) ==
          "say: Ctrl-Z: this job goes on in the background, and its failures are handled; `fg` "
          "brings it back, leave foreground");
  }

  TEST_CASE("what a broken supervisor says is left out, and the user is told once") {
    story s;
    const std::string said = "say: the node supervisor has said what its keeper does not "
                             "understand, which is left out: ";
    SUBCASE("bytes that are no message") {
      CHECK(text(s.core.not_understood("5 bytes")) == said + "5 bytes");
    }
    SUBCASE("a message of another conversation") {
      CHECK(s.says<Hello>() == said + "no supervisor says Hello");
    }
    SUBCASE("a message of its keeper's") {
      CHECK(s.says<UserSignal>() == said + "no supervisor says UserSignal");
    }
    SUBCASE("a slot that there is not") {
      CHECK(s.keeps(limits::kept_slots) == said + "there is no slot 4");
    }
    CHECK(text(s.core.not_understood("again")) == "");
    s.runs(1, 101);
    s.crash();
    s.supervisor(200);
    CHECK(text(s.core.not_understood("anew")) == said + "anew");
  }

  TEST_CASE("a file for a successor goes into its slot") {
    story s;
    CHECK(s.keeps(0) == "keep in 0");
    CHECK(s.keeps(limits::kept_slots - 1) == "keep in 3");
  }

  TEST_CASE("a stopped supervisor is continued after a while, each time") {
    story s;
    for (int i = 0; i < 2; ++i) {
      CHECK(text(s.core.supervisor_stopped(s.now)) == "");
      CHECK(s.core.next_wakeup() == s.now + limits::supervisor_stopped_within);
      CHECK(s.passes(limits::supervisor_stopped_within) ==
            "say: the node supervisor has been stopped (SIGSTOP) for 10.0 s: it is continued, "
            "since it decides whether its workers may train on, kill 100 with 18");
      CHECK_FALSE(s.core.next_wakeup());
    }
  }

  TEST_CASE("a supervisor that goes on by itself, or that was killed, is not continued") {
    story s;
    s.core.supervisor_stopped(s.now);
    SUBCASE("a keeper that was stopped with it hears of both when it goes on itself") {
      s.now += 1h;
      CHECK(text(s.core.supervisor_continued()) == "");
    }
    SUBCASE("killed") {
      CHECK(s.crash() == "start supervisor");
      s.supervisor(200);
    }
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(limits::supervisor_stopped_within) == "");
  }

  TEST_CASE("a user who wants an end does not wait for a stopped supervisor") {
    story s;
    SUBCASE("that is stopped already") {
      s.core.supervisor_stopped(s.now);
      CHECK(text(s.core.user_signal(s.now, SIGUSR1)) == "user's 10");
      CHECK(text(s.core.user_signal(s.now, SIGTERM)) == "user's 15, kill 100 with 18");
    }
    SUBCASE("that is stopped later") {
      s.core.user_signal(s.now, SIGTERM);
      CHECK(text(s.core.supervisor_stopped(s.now)) == "kill 100 with 18");
    }
    CHECK_FALSE(s.core.next_wakeup());
  }
}
