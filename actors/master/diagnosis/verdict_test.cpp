#include "actors/master/diagnosis/verdict.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using messages::HangKind;

namespace {

/// Four ranks of one group, each of which has stood in barrier #47 for `idle`, until told
/// otherwise.
struct scene {
  explicit scene(duration idle) {
    const auto group = names.number_of("dp", 1, 4);
    for (auto& f : all) {
      f.known = true;
      f.feeds = static_cast<std::uint64_t>(diag::feed::collectives);
      f.state = 'S';
      f.motion = rank_motion::stands;
      f.limit = 1'200ms;
      f.idle = idle;
      f.rows = {{group, 47, 46, diag::collective::barrier, 0, idle, true}};
    }
  }
  void leaves(std::uint32_t rank, duration ago) {
    all[rank].rows[0].left = all[rank].rows[0].entered;
    all[rank].idle = ago;
  }
  /// Rank 1 has not entered what the others wait in, and looks like this.
  void misses(rank_motion looks, diag::phase in = diag::phase::forward) {
    auto& f = all[1];
    f.rows[0].entered = f.rows[0].left;
    f.motion = looks;
    f.phase_now = in;
  }
  std::optional<verdict> judged() const { return judge(policy, all, names); }

  diagnosis_policy policy;
  std::vector<rank_facts> all{4};
  communicator_names names;
};

} // namespace

TEST_SUITE("a collective that all have entered") {
  TEST_CASE("and none leaves is a link's fault") {
    const auto v = scene(2s).judged();
    REQUIRE(v);
    CHECK(v->kind == HangKind::LINK);
    CHECK(v->waits.ranks == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(v->stood == 2s);
  }

  TEST_CASE("and one has not left, while the others wait in the next, is a link's fault") {
    scene s(2s);
    for (const auto further : {0, 1, 2})
      s.all[further].rows[0].entered = 48, s.all[further].rows[0].left = 47;
    const auto v = s.judged();
    REQUIRE(v);
    CHECK(v->kind == HangKind::LINK);
    CHECK(v->elsewhere());
    CHECK(v->other.number == 47);
    CHECK(v->other.ranks == std::vector<std::uint32_t>{3});
  }

  TEST_CASE("of which one has left just now is about to end") {
    scene s(8s);
    s.leaves(0, 10ms);
    s.leaves(2, 0ms);
    CHECK_FALSE(s.judged());
  }

  TEST_CASE("and that not all leave is a link's fault, too") {
    scene s(8s);
    s.leaves(0, 2s);
    const auto v = s.judged();
    REQUIRE(v);
    CHECK(v->kind == HangKind::LINK);
    CHECK(v->waits.ranks == std::vector<std::uint32_t>{1, 2, 3});
  }
}

TEST_SUITE("a rank that the others wait for") {
  using m = rank_motion;

  duration named_after(scene s) {
    for (const duration d : std::initializer_list<duration>{2s, 60s, 6min, 10min}) {
      for (auto& f : s.all)
        f.idle = d;
      if (const auto v = s.judged(); v && v->culprits == std::vector<std::uint32_t>{1})
        return d;
    }
    return 24h;
  }

  TEST_CASE("is named at its limit, or after as long as what it does may take") {
    const struct {
      rank_motion looks;
      duration after;
    } cases[] = {{m::stands, 2s},  {m::locked, 2s},  {m::deadlocked, 2s}, {m::ended, 2s},
                 {m::awaits, 60s}, {m::works, 6min}, {m::moves, 10min},   {m::ends, 10min}};
    for (const auto& c : cases) {
      CAPTURE(static_cast<int>(c.looks));
      scene s(2s);
      s.misses(c.looks);
      CHECK(named_after(s) == c.after);
    }
  }

  TEST_CASE("is named at the user's limit, whatever it does, if it does not move") {
    for (const auto looks :
         {m::stands, m::locked, m::deadlocked, m::ended, m::ends, m::awaits, m::works, m::spins}) {
      CAPTURE(static_cast<int>(looks));
      scene s(2s);
      s.misses(looks, diag::phase::other);
      s.policy.fixed_limit = s.all[1].limit;
      const auto v = s.judged();
      REQUIRE(v);
      CHECK(v->culprits == std::vector<std::uint32_t>{1});
      CHECK(v->act_least == 0s);
      CHECK(v->moves == (looks == m::ends));
    }
    scene s(2s);
    s.misses(m::moves);
    s.policy.fixed_limit = s.all[1].limit;
    CHECK_FALSE(s.judged());
    s.all[1].idle = 12s; // ten times that
    REQUIRE(s.judged());
    CHECK(s.judged()->moves);
  }

  TEST_CASE("is ended as soon as its standstill cannot be work") {
    const struct {
      rank_motion looks;
      diag::phase in;
      duration least;
    } cases[] = {
        {m::stands, diag::phase::forward, 0s},      {m::locked, diag::phase::forward, 0s},
        {m::deadlocked, diag::phase::forward, 0s},  {m::deadlocked, diag::phase::other, 0s},
        {m::locked, diag::phase::other, 60s},       {m::stands, diag::phase::other, 10min},
        {m::deadlocked, diag::phase::input, 10min}, {m::awaits, diag::phase::forward, 10min},
        {m::spins, diag::phase::forward, 10min},    {m::works, diag::phase::forward, 30min},
        {m::ended, diag::phase::other, 60s}};
    for (const auto& c : cases) {
      CAPTURE(static_cast<int>(c.looks));
      scene s(1h);
      s.misses(c.looks, c.in);
      const auto v = s.judged();
      REQUIRE(v);
      CHECK(v->culprits == std::vector<std::uint32_t>{1});
      CHECK(v->act_least == c.least);
      CHECK_FALSE(v->moves);
    }
  }

  TEST_CASE("is not told for the end of its script alone") {
    scene s(2s);
    for (auto& f : s.all)
      f.rows[0].left = f.rows[0].entered, f.motion = m::ended;
    CHECK_FALSE(s.judged());
    // Three of four are over, and the last one is in a batch more.
    scene uneven(2s);
    for (const auto over : {0, 1, 2}) {
      auto& f = uneven.all[static_cast<std::size_t>(over)];
      f.rows[0].entered = f.rows[0].left;
      f.motion = m::ended;
    }
    REQUIRE(uneven.judged());
    CHECK(uneven.judged()->culprits == std::vector<std::uint32_t>{0, 1, 2});
  }
}
