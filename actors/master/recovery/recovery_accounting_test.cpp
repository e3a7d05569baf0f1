#include "actors/limits.hpp"
#include "tests/actors/planner_story.hpp"

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

bool goes_on(const std::string& said) {
  return said.find("begin WorldProposed") != std::string::npos;
}
bool is_over(const std::string& said) {
  return said.find("verdict failure") != std::string::npos;
}

} // namespace

TEST_SUITE("recovery_core: the budget of each node") {
  TEST_CASE("every node has its own, and the one with the root cause pays") {
    auto s = planner_story::two_that_run(1);
    CHECK(s.fails_and_ends("a").find("record RestartCounted g1 to a, restart 1") == 0);
    s.is_sealed();
    s.now += 1h; // of work: it is no failure of the start
    CHECK(s.fails_and_ends("b").find("record RestartCounted g2 to b, restart 2") == 0);
    s.is_sealed();
    CHECK(s.fails_and_ends("b").find("the only restart of node b is used up") != std::string::npos);
  }

  TEST_CASE("one failure at the start on several nodes is the job's: as often as one may have it") {
    for (const bool works : {false, true}) {
      auto s = planner_story::that_runs({"a", "b", "c"}, planner_story::sizes(3, 3),
                                        planner_story::restarts(2));
      const auto fails = [&](const char* node) {
        s.now += works ? 1h : 1s;
        return s.fails_and_ends(node);
      };
      for (const char* node : {"a", "b"}) {
        CHECK(goes_on(fails(node)));
        s.is_sealed();
      }
      const auto third = fails("c");
      CHECK(is_over(third) == !works);
      CHECK((third.find("the last 3 generations have failed in this way within 10.0 s of their "
                        "start, on whatever node") != std::string::npos) == !works);
    }
  }
}

TEST_SUITE("recovery_core: broken hardware") {
  TEST_CASE("the node is excluded at the cost of no restart, and another takes its place") {
    auto s = planner_story::two_that_run(0);
    s.comes("c");
    CHECK(s.fails("a", {201}) == "");
    CHECK(
        s.ends("it failed") ==
        lines("mark the machine of a at a.lan: rank 0 (node a, local rank 0, pid 100) failed: exit "
              "code 201 (its hardware seems to be broken)",
              "evict a: rank 0 (node a, local rank 0, pid 100) failed: exit code 201 (its "
              "hardware seems to be broken)",
              "record GenerationProposed g2", "begin WorldProposed g2: c(0,1) b(2,3)"));
    CHECK(s.said.find("restarting without node a (not counted against --max-restarts)") !=
          std::string::npos);
    CHECK(s.is_lost("a") == "");
  }

  TEST_CASE("a smaller world will do, where there is one") {
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(1, 2));
    CHECK(s.fails_and_ends("a", {201}).find("begin WorldProposed g2: b(0,1)") != std::string::npos);
  }

  TEST_CASE("known by a line of a log, which is told in the verdict; so is the end of the root "
            "cause's log") {
    auto s = planner_story::two_that_run(0);
    s.core.failed(s.now, messages::author("test").write<messages::Failed>(
                             generation{1}, [](messages::Failed::Builder b) {
                               b.setNode("a");
                               auto f = b.initFailures(1)[0];
                               f.setPid(100);
                               f.setExitCode(1);
                               f.setMessage("exit code 1");
                               f.setLogTail("step 7\nCUDA error: uncorrectable ECC error "
                                            "encountered\n");
                             }));
    bool concluded = false;
    for (const auto& e : s.core.generation_ended(s.now, generation{1}, "it failed"))
      if (const auto* d = std::get_if<recovery_core::direct>(&e)) {
        auto verdict = d->message.as<messages::Conclude>().read();
        const auto f = verdict->getFailures()[0];
        CHECK(f.getMatchedLine() == "CUDA error: uncorrectable ECC error encountered");
        CHECK(f.getExitClass() == exit_class::HARDWARE);
        CHECK(f.getLogTail() == "step 7\nCUDA error: uncorrectable ECC error encountered\n");
        concluded = true;
      }
    CHECK(concluded);
  }

  TEST_CASE("a node that cannot be spared has failed like any other") {
    auto s = planner_story::two_that_run(1);
    CHECK(s.fails_and_ends("a", {201}).find("record RestartCounted g1 to a, restart 1") == 0);
    s.is_sealed();
    CHECK(is_over(s.fails_and_ends("a", {201})));
  }
}

TEST_SUITE("recovery_core: failures at the start") {
  TEST_CASE("the first is followed at once, the next ones after a pause that grows, and is told") {
    auto o = planner_story::restarts(9);
    o.start_pause = {};
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2), o);
    CHECK(goes_on(s.fails_and_ends("a")));
    CHECK(s.said.find("restarting the workers (restart 1 of 9 of node a)") != std::string::npos);
    s.is_sealed();
    CHECK_FALSE(goes_on(s.fails_and_ends("a")));
    CHECK(s.said.find("restarting the workers in 100 ms, since the last 2 generations have failed "
                      "within 10.0 s of their start (restart 2 of 9 of node a)") !=
          std::string::npos);
    CHECK(s.core.next_wakeup() == s.now + 100ms);
    CHECK(goes_on(s.passes(100ms)));
    s.is_sealed();
    CHECK_FALSE(goes_on(s.fails_and_ends("b"))); // whichever node it is
    CHECK_FALSE(goes_on(s.passes(199ms)));
    CHECK(goes_on(s.passes(1ms)));
    s.is_sealed();
    s.now += 10s;
    CHECK(goes_on(s.fails_and_ends("a")));
  }

  TEST_CASE(
      "a pause keeps no node out: one that comes meanwhile takes part, a loss costs no more") {
    auto o = planner_story::restarts(9);
    o.start_pause.first = 5s;
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(1, 3), o);
    s.fails_and_ends("a");
    s.is_sealed();
    CHECK_FALSE(goes_on(s.fails_and_ends("a")));
    s.comes("c");
    CHECK_FALSE(goes_on(s.passes(4999ms)));
    CHECK(s.passes(1ms).find("begin WorldProposed g3: a(0,1) b(2,3) c(4,5)") != std::string::npos);
    s.is_sealed();
    CHECK_FALSE(goes_on(s.fails_and_ends("a")));
    s.is_lost("b");
    s.is_lost("c");
    CHECK(goes_on(s.passes(5s)));
  }

  TEST_CASE("the count outlives the master, and its pause does not") {
    auto o = planner_story::restarts(9);
    o.start_pause = {};
    const auto counted =
        messages::author("x").write<messages::RestartCounted>(generation{1}, [](auto b) {
          b.setGeneration(1);
          b.setRestartCount(1);
          b.setNode("a");
          b.setFailedAtStart(4);
        });
    planner_story s(planner_story::sizes(1, 1), o, {counted.any()});
    CHECK(goes_on(s.comes("a")));
    s.is_sealed();
    CHECK_FALSE(goes_on(s.fails_and_ends("a")));
    CHECK(s.core.next_wakeup() == s.now + 800ms);
  }
}

TEST_SUITE("recovery_core: progress") {
  TEST_CASE("so many generations in a row without it end the job, with a code of their own") {
    auto o = planner_story::restarts(9);
    o.without_progress_max = 3;
    o.progress_after = 60s;
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2), o);
    for (int i = 0; i < 2; ++i) {
      s.now += 59s;
      CHECK(goes_on(s.fails_and_ends("a")));
      s.is_sealed();
    }
    s.fails("b");
    const auto effects = s.core.generation_ended(s.now, s.core.current(), "it failed");
    CHECK(text(effects).find("3 generations in a row failed within 60.0 s of the start, which is "
                             "no progress (--no-progress-limit)") != std::string::npos);
    const auto* v = std::get_if<recovery_core::verdict>(&effects.back());
    REQUIRE(v);
    CHECK(v->exit_code == limits::exit_no_progress);
  }

  TEST_CASE("one generation that ran long enough makes up for those before") {
    auto o = planner_story::restarts(9);
    o.without_progress_max = 2;
    o.progress_after = 60s;
    auto s = planner_story::that_runs({"a", "b"}, planner_story::sizes(2, 2), o);
    CHECK(goes_on(s.fails_and_ends("a")));
    s.is_sealed();
    s.now += 60s;
    CHECK(goes_on(s.fails_and_ends("a")));
    s.is_sealed();
    CHECK(goes_on(s.fails_and_ends("a")));
    s.is_sealed();
    CHECK(is_over(s.fails_and_ends("a")));
  }

  TEST_CASE("losses and newcomers are no failures, and the count outlives the master") {
    auto o = planner_story::restarts(9);
    o.without_progress_max = 2;
    const auto counted =
        messages::author("x").write<messages::RestartCounted>(generation{1}, [](auto b) {
          b.setGeneration(1);
          b.setRestartCount(1);
          b.setNode("a");
          b.setWithoutProgress(1);
        });
    planner_story s(planner_story::sizes(1, 2), o, {counted.any()});
    s.comes("a");
    s.comes("b");
    s.is_sealed();
    CHECK(goes_on(s.is_lost_and_ends("b")));
    s.is_sealed();
    s.comes("b");
    CHECK(s.passes(100ms) == "stop g2: 1 more node is here");
    CHECK(goes_on(s.ends()));
    s.is_sealed();
    CHECK(is_over(s.fails_and_ends("a")));
  }
}
