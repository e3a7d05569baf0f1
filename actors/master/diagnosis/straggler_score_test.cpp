#include "actors/master/diagnosis/straggler_score.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Four ranks that report in turn, every 600 ms; one of them is looked at.
struct job {
  explicit job(std::uint32_t size = 4) : ranks(size) { score.world(size); }

  /// A round of reports; what is told of rank 2.
  std::optional<straggler_score::change> round(duration others, duration rank_2) {
    std::optional<straggler_score::change> told;
    now += within;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const auto change = score.add(policy, now, report(r, r == 2 ? rank_2 : others));
      if (r == 2)
        told = change;
      else
        CHECK(!change);
    }
    return told;
  }
  /// So many rounds; the first in which something is told, counted from 1; 0: none.
  unsigned rounds(unsigned n, duration others, duration rank_2) {
    for (unsigned i = 1; i <= n; ++i)
      if (last = round(others, rank_2); last)
        return i;
    return 0;
  }
  straggler_score::sample report(std::uint32_t rank, duration busy) const {
    return {rank, busy, 100ms, steps, within, pipelined};
  }
  /// All are alike for long enough to be known.
  void learns() { CHECK(rounds(10, 100ms, 100ms) == 0); }

  std::uint32_t ranks;
  instant now{1h};
  duration within = 600ms;
  std::uint32_t steps = 5;
  bool pipelined = false;
  diagnosis_policy policy;
  straggler_score score;
  std::optional<straggler_score::change> last;
};

} // namespace

TEST_CASE("a rank that becomes twice as slow is told, with both of its scores") {
  job j;
  j.learns();
  CHECK(j.rounds(5, 100ms, 200ms) == 2);
  REQUIRE(j.last);
  CHECK(j.last->begins);
  CHECK(j.last->what.rank == 2);
  CHECK(j.last->what.score == doctest::Approx(2));
  CHECK(j.last->what.by_its_past == doctest::Approx(2));
  CHECK(j.last->what.busy == 200ms);
  CHECK(j.last->what.others == 100ms);
  CHECK(j.score.slow_ranks() == 1);
  CHECK(j.rounds(20, 100ms, 200ms) == 0); // once
}

TEST_CASE("it is over after three reports in which it is as the others are") {
  job j;
  j.learns();
  j.rounds(2, 100ms, 200ms);
  CHECK(j.rounds(2, 100ms, 100ms) == 0);
  CHECK(j.rounds(1, 100ms, 200ms) == 0); // not in a row
  CHECK(j.rounds(5, 100ms, 100ms) == 3);
  CHECK(!j.last->begins);
  CHECK(j.score.slow_ranks() == 0);
}

TEST_CASE("one long report is none, and neither are few steps or a short time") {
  job one, few, brief;
  for (auto* j : {&one, &few, &brief})
    j->learns();
  CHECK(!one.round(100ms, 300ms));
  CHECK(one.rounds(5, 100ms, 100ms) == 0);
  few.steps = 1;
  CHECK(few.rounds(10, 100ms, 200ms) == few.policy.straggler_steps);
  brief.within = 200ms;
  CHECK(brief.rounds(10, 100ms, 200ms) == 5); // 1 s
}

TEST_CASE("all that become slow together are no stragglers, and neither is half as slow again") {
  job j, little;
  j.learns();
  CHECK(j.rounds(20, 300ms, 300ms) == 0);
  little.learns();
  CHECK(little.rounds(20, 100ms, 149ms) == 0);
}

TEST_CASE("a difference of less than 3 ms is the machine's noise") {
  job j;
  CHECK(j.rounds(10, 2ms, 2ms) == 0);
  CHECK(j.rounds(20, 2ms, 4'900us) == 0);
  job larger;
  CHECK(larger.rounds(10, 2ms, 2ms) == 0);
  CHECK(larger.rounds(20, 2ms, 5'100us) == 2);
}

TEST_CASE(
    "one that was never faster is told later, and at a higher score; a stage of a pipeline never") {
  job always, less, stage;
  CHECK(always.rounds(20, 100ms, 185ms) == 6);
  CHECK(less.rounds(20, 100ms, 175ms) == 0);
  stage.pipelined = true;
  CHECK(stage.rounds(20, 100ms, 185ms) == 0);
}

TEST_CASE("a rank whose reports have always scattered must stand out from that") {
  job j;
  for (int i = 0; i < 30; ++i)
    CHECK(!j.round(100ms, i % 2 == 0 ? 80ms : 140ms));
  CHECK(j.rounds(10, 100ms, 200ms) == 0);
  job steady;
  CHECK(steady.rounds(30, 100ms, 110ms) == 0);
  CHECK(steady.rounds(10, 100ms, 200ms) == 2);
}

TEST_CASE("one that is slow again soon counts, and is not told again") {
  job j;
  j.learns();
  CHECK(j.rounds(2, 100ms, 200ms) == 2);
  CHECK(j.rounds(3, 100ms, 100ms) == 3);
  CHECK(j.rounds(10, 100ms, 300ms) == 0);
  CHECK(j.score.slow_ranks() == 1);
  CHECK(j.rounds(3, 100ms, 100ms) == 3);
  j.now += j.policy.tell_again_after;
  CHECK(j.rounds(10, 100ms, 400ms) == 2);
  CHECK(j.last->begins);
}

TEST_CASE("of very many ranks the median is that of all") {
  job j(100);
  j.learns();
  CHECK(j.rounds(5, 100ms, 200ms) == 2);
  CHECK(j.last->what.others == 100ms);
}

TEST_CASE("a new world begins anew, and what is not of it is none") {
  job j;
  j.learns();
  j.rounds(2, 100ms, 200ms);
  j.score.world(4);
  CHECK(j.score.slow_ranks() == 0);
  CHECK(!j.score.add(j.policy, j.now, j.report(4, 1h)));
  auto none = j.report(2, 1h);
  none.steps = 0;
  CHECK(!j.score.add(j.policy, j.now, none));
  // The first to report has none to be compared with.
  CHECK(!j.score.add(j.policy, j.now, j.report(2, 1h)));
}
