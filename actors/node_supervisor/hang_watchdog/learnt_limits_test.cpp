#include "actors/node_supervisor/hang_watchdog/learnt_limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using diag::phase;

namespace {

std::uint64_t ns(duration d) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(d).count());
}

/// What a histogram makes of it: the end of its bucket.
duration rounded(duration d) {
  return duration(static_cast<duration::rep>(diag::end_of_bucket(diag::bucket_of(ns(d)))));
}

duration times(double factor, duration d) {
  return duration(static_cast<duration::rep>(factor * static_cast<double>(rounded(d).count())));
}

void add(diag::duration_counts& to, std::uint32_t count, duration each) {
  to.counts[diag::bucket_of(ns(each))] += count;
  to.total += count;
}

/// A process as its page shows it, read by the limits after each passage.
struct history {
  void makes(std::uint32_t steps, duration each) {
    page.steps_made += steps;
    add(page.step_durations, steps, each);
    limits.read(policy, page);
  }
  /// Five slow steps, as the first ones are, and then many others.
  void is_warm_with_steps_of(duration each) {
    makes(5, 60s);
    makes(100, each);
  }
  duration limit() const { return limits.limit(policy, page); }
  duration limit_in(phase p) {
    page.phase_now = p;
    return limit();
  }

  watch_policy policy;
  diag::page_view page;
  learnt_limits limits;
};

} // namespace

TEST_CASE("the first steps have a limit of their own") {
  history h;
  CHECK(h.limit() == h.policy.warm_up_limit);
  h.makes(4, 100ms);
  CHECK(h.limits.is_warming_up(h.policy, h.page));
  CHECK(h.limit() == h.policy.warm_up_limit);
  h.makes(1, 100ms);
  CHECK(!h.limits.is_warming_up(h.policy, h.page));
  CHECK(h.limit() == 3s); // little is usual yet
  h.makes(4, 100ms);
  CHECK(h.limit() == 3s);
  h.makes(1, 100ms);
  CHECK(h.limit() == h.policy.floor);
}

TEST_CASE("while little is usual, the first steps say what may be, within bounds") {
  for (const auto& [first, limit] : {std::pair<duration, duration>{4s, times(1.8, 4s)},
                                     std::pair<duration, duration>{60s, 10s}}) {
    history h;
    h.makes(1, first);
    h.makes(5, 100ms);
    CHECK(h.limit() == limit);
  }
}

TEST_CASE("what is usual is measured without the warm-up") {
  history h;
  h.is_warm_with_steps_of(1s);
  CHECK(h.limit() == times(1.8, 1s));
  CHECK(h.limits.step_p99(h.page) == rounded(1s));
  CHECK(h.limits.step_median(h.page) == rounded(1s));
}

TEST_CASE("short steps have the floor, and very long ones a bound") {
  history shorter, longer;
  shorter.is_warm_with_steps_of(20ms);
  CHECK(shorter.limit() == shorter.policy.floor);
  longer.is_warm_with_steps_of(40min);
  CHECK(longer.limit() == longer.policy.learnt_most);
}

TEST_CASE("one step in a hundred that is long makes the limit longer") {
  history h;
  h.is_warm_with_steps_of(1s);
  h.makes(3, 10s);
  CHECK(h.limit() == times(1.8, 10s));
  CHECK(h.limits.step_median(h.page) == rounded(1s));
}

TEST_CASE("a watchdog that begins in the middle of training finds steps that are usual") {
  history h;
  h.makes(1'000, 2s);
  CHECK(h.limit() == times(1.8, 2s));
}

TEST_CASE("when the page halves its counts, those of the warm-up are halved with them") {
  history h;
  h.makes(8, 100ms); // all of them are its warm-up
  h.makes(4, 100ms);
  CHECK(h.limit() == 3s);
  h.page.step_durations = {};
  add(h.page.step_durations, 11, 100ms);
  h.limits.read(h.policy, h.page);
  CHECK(h.limit() == h.policy.floor); // 11 less 4, where 11 less 8 would be too few
}

TEST_CASE("phases that may be long have limits of their own") {
  history h;
  h.is_warm_with_steps_of(100ms);
  CHECK(h.limit_in(phase::input) == h.policy.floor);
  CHECK(h.limit_in(phase::checkpoint) == h.policy.checkpoint_limit);
  CHECK(h.limit_in(phase::evaluation) == h.policy.evaluation_limit);
  CHECK(h.limit_in(phase::user) == h.policy.user_phase_limit);
  auto& evaluation = h.page.each_phase[static_cast<std::size_t>(phase::evaluation)];
  add(evaluation.durations, 3, 50s);
  CHECK(h.limit_in(phase::evaluation) == times(3, 50s));
  add(evaluation.durations, 3, 1h);
  CHECK(h.limit_in(phase::evaluation) == h.policy.learnt_most);
}

TEST_CASE("what it went on from by itself is waited for, in that phase, and fades") {
  history h;
  h.is_warm_with_steps_of(100ms);
  h.page.phase_now = phase::input;
  h.limits.survived(h.page, 20s);
  CHECK(h.limit() == 30s);
  h.limits.survived(h.page, 4s); // a shorter one says nothing against that
  CHECK(h.limit() == 30s);
  CHECK(h.limit_in(phase::forward) == h.policy.floor);
  h.page.steps_made += 2'000;
  CHECK(h.limit_in(phase::input) == 15s);
  h.page.steps_made += 50'000;
  CHECK(h.limit_in(phase::input) == h.policy.floor);
}

TEST_CASE("the user's own limit replaces everything") {
  history h;
  h.policy.fixed_limit = 500ms;
  CHECK(h.limit() == 500ms);
  h.is_warm_with_steps_of(5s);
  CHECK(h.limit() == 500ms);
  CHECK(h.limit_in(phase::checkpoint) == 500ms);
}

TEST_CASE("a program whose steps are not seen is measured by its collectives") {
  history h;
  h.page.communicators.resize(2);
  h.page.communicators[0].entered = 3;
  h.page.communicators[1].entered = 19;
  CHECK(h.limits.is_warming_up(h.policy, h.page));
  h.page.communicators[1].entered = 20;
  CHECK(!h.limits.is_warming_up(h.policy, h.page));
  // One whose steps would be seen may still be in its first.
  h.page.feeds = static_cast<std::uint64_t>(diag::feed::steps_by_optimizer);
  CHECK(h.limits.is_warming_up(h.policy, h.page));
  h.page.communicators[1].entered = 64;
  CHECK(!h.limits.is_warming_up(h.policy, h.page));
}

TEST_CASE("where collectives or batches stand for steps, silences tell what is usual") {
  for (const bool batches : {false, true}) {
    CAPTURE(batches);
    history h;
    h.page.feeds = static_cast<std::uint64_t>(diag::feed::steps_by_optimizer);
    const auto goes_on = [&](std::uint32_t times, duration each) {
      if (batches)
        h.page.each_phase[static_cast<std::size_t>(phase::input)].entered += times;
      else
        h.page.communicators[0].entered += 4ull * times;
      add(h.page.silences, 10 * times, 1ms);
      add(h.page.silences, times, each);
      h.limits.read(h.policy, h.page);
    };
    h.page.communicators.resize(1);
    goes_on(15, 60s); // it compiles
    CHECK(h.limit() == h.policy.warm_up_limit);
    goes_on(1, 60s);
    CHECK(h.limit() == 3s); // without the warm-up nothing is known
    goes_on(2, 2s);
    CHECK(h.limit() == times(1.8, 2s));
    goes_on(20, 2s);
    // Each long silence is surrounded by short ones, and most of the time passes in it.
    CHECK(h.limit() == (batches ? 10s : times(1.8, 2s)));
    h.page.step_durations = {};
  }
}

TEST_CASE("a program that only evaluates has the limit of what is usual there") {
  history h;
  h.page.communicators.resize(1);
  h.page.communicators[0].entered = 400;
  h.limits.read(h.policy, h.page);
  add(h.page.silences, 500, 20ms);
  h.limits.read(h.policy, h.page);
  CHECK(h.limit_in(phase::evaluation) == h.policy.floor);
  h.page.each_phase[static_cast<std::size_t>(phase::backward)].entered = 1;
  CHECK(h.limit_in(phase::evaluation) == h.policy.evaluation_limit);
}

TEST_CASE("steps that rest give way to collectives, and come back") {
  history h;
  h.page.communicators.resize(1);
  h.is_warm_with_steps_of(10s);
  CHECK(h.limit() == times(1.8, 10s));
  add(h.page.silences, 500, 1ms);
  h.page.communicators[0].entered += 999;
  h.limits.read(h.policy, h.page);
  CHECK(!h.limits.is_without_steps(h.page));
  h.page.communicators[0].entered += 1;
  CHECK(h.limits.is_without_steps(h.page));
  CHECK(h.limit() == h.policy.floor);
  h.makes(1, 10s);
  CHECK(h.limit() == times(1.8, 10s));
}
