// Hangs that only look like work, or that come before anything is usual: named all the same.
//
// The cases are made from seeds: a kind of program, a way to hang, something that goes on beside
// it, and a moment. TROUPE_HANG_SEED repeats one.

#include "tests/actors/training_model.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;
using messages::HangKind;

namespace {

using ranks = std::vector<std::uint32_t>;

/// Of the first verdict, from the moment in which the hang took hold; 0: there was none.
double named_after_ms(const training_model& m) {
  return m.verdicts.empty() || !m.began ? 0 : milliseconds_of(m.verdicts.front().at - *m.began);
}

std::string said(const training_model& m) {
  return m.verdicts.empty() ? "nothing" : m.verdicts.front().sentence;
}

template<class Case>
void each_seed(std::uint64_t count, Case run) {
  const char* set = std::getenv("TROUPE_HANG_SEED");
  const auto first = set ? std::strtoull(set, nullptr, 10) : 1;
  for (auto seed = first; seed < first + (set ? 1 : rounds(count)); ++seed) {
    random_source chance(seed);
    run(seed, chance);
  }
}

} // namespace

TEST_SUITE("named is") {
  TEST_CASE("a deadlock in any program, whatever goes on beside it") {
    each_seed(100, [](std::uint64_t seed, random_source& chance) {
      const duration lengths[] = {10ms, 20ms, 100ms, 300ms, 1s};
      training_model::shape s;
      s.ranks = static_cast<std::uint32_t>(2 + chance.below(7));
      s.per_node = std::max<std::uint32_t>(1, s.ranks / 2);
      s.usual = lengths[chance.below(5)];
      s.begins_warm = true;
      s.without_steps = chance.chance(0.7);
      const auto culprit = static_cast<std::uint32_t>(chance.below(s.ranks));
      const auto deadlock = activity::asleep("train.py:60 (lock_twice)");
      const activity ways[] = {deadlock, deadlock.beside_programs(), deadlock.beside_uploads(),
                               activity::stopped(), activity::stopped().beside_programs()};
      const auto way = chance.below(5);
      training_model m(seed, s);
      m.at(2 * s.usual + std::chrono::microseconds(chance.below(3'000'000)),
           [&] { m.freeze(culprit, ways[way]); });
      m.run(2 * s.usual + 3s + std::max<duration>(2s, 3 * s.usual));
      INFO("repeat with TROUPE_HANG_SEED=", seed, "; way ", way, ", steps ", !s.without_steps,
           "; said: ", said(m));
      CHECK(m.verdicts.size() == 1);
      CHECK((m.verdicts.empty() || m.verdicts.front().culprits == ranks{culprit}));
      CHECK(named_after_ms(m) <= std::max(2'000.0, 3 * milliseconds_of(s.usual)));
    });
  }

  TEST_CASE("a rank that is stopped, at its first step as at any") {
    each_seed(60, [](std::uint64_t seed, random_source& chance) {
      training_model::shape s;
      s.ranks = s.per_node = static_cast<std::uint32_t>(2 + chance.below(3));
      s.without_steps = chance.chance(0.5);
      s.says_collectives = chance.chance(0.7);
      const auto culprit = static_cast<std::uint32_t>(chance.below(s.ranks));
      training_model m(seed, s);
      // The first step compiles for a minute: nothing is usual yet.
      m.before_step = [](std::uint32_t, std::uint64_t step) -> std::optional<interlude> {
        return step == 0 ? std::optional(interlude{diag::phase::other, 1min, {}, {}})
                         : std::nullopt;
      };
      m.at(std::chrono::milliseconds(10 + chance.below(50'000)),
           [&] { m.freeze(culprit, activity::stopped()); });
      m.run(55s);
      INFO("repeat with TROUPE_HANG_SEED=", seed, "; said: ", said(m));
      REQUIRE(!m.verdicts.empty());
      CHECK(m.verdicts.front().culprits == ranks{culprit});
      CHECK(m.verdicts.front().sentence.find("kill -CONT") != std::string::npos);
      CHECK(named_after_ms(m) <= 2'000);
    });
  }

  TEST_CASE("a deadlock soon after the start of a program whose steps are not seen") {
    each_seed(30, [](std::uint64_t seed, random_source& chance) {
      training_model::shape s;
      s.usual = 20ms;
      s.without_steps = true;
      training_model m(seed, s);
      m.at(1'500ms + std::chrono::milliseconds(chance.below(1'000)),
           [&] { m.freeze(2, activity::asleep("acquire()")); });
      m.run(8s);
      INFO("repeat with TROUPE_HANG_SEED=", seed, "; said: ", said(m));
      REQUIRE(!m.verdicts.empty());
      CHECK(m.verdicts.front().culprits == ranks{2});
      CHECK(named_after_ms(m) <= 4'000);
    });
  }

  TEST_CASE("another collective in the same place, at once and at any step") {
    for (const bool warm : {false, true})
      for (const bool steps : {false, true}) {
        training_model::shape s;
        s.usual = 3s; // no limit of steps as long has passed by then
        s.per_node = 2;
        s.begins_warm = warm;
        s.without_steps = !steps;
        training_model m(5, s);
        m.at(100ms, [&] { m.mistake_kind(1); });
        m.run(8s);
        INFO("said: ", said(m));
        REQUIRE(m.verdicts.size() == 1);
        CHECK(m.verdicts.front().kind == HangKind::OTHER_COLLECTIVE);
        CHECK(m.verdicts.front().culprits == ranks{1});
        CHECK(named_after_ms(m) <= 2'000);
      }
  }

  TEST_CASE("that processes have ended which the others wait for, a node's or one beside others") {
    for (const bool beside : {false, true}) {
      training_model::shape s;
      s.begins_warm = true;
      s.per_node = beside ? 4 : 2;
      s.says_ends = !beside;
      training_model m(6, s);
      m.at(2'050ms, [&] {
        m.end(0);
        m.end(1);
      });
      m.run(90s);
      INFO("said: ", said(m));
      REQUIRE(m.verdicts.size() == 1);
      CHECK(m.verdicts.front().culprits == ranks{0, 1});
      CHECK(m.verdicts.front().sentence ==
            "ranks 2, 3 wait in all_reduce #1022 of group 0 for ranks 0, 1, which have ended");
      // A rank may take a minute after the others' end for what is its own.
      CHECK(named_after_ms(m) > 60'000);
      CHECK(named_after_ms(m) < 65'000);
    }
  }

  TEST_CASE("that processes have ended which had never entered anything") {
    for (const bool known : {false, true}) {
      training_model::shape s;
      s.per_node = 2;
      s.says_groups = known;
      training_model m(6, s);
      // They end while they still compile, and nothing is usual yet.
      m.before_step = [](std::uint32_t rank, std::uint64_t step) -> std::optional<interlude> {
        return rank < 2 && step == 0 ? std::optional(interlude{diag::phase::other, 1min, {}, {}})
                                     : std::nullopt;
      };
      m.at(5s, [&] {
        m.end(0);
        m.end(1);
      });
      m.run(15min);
      INFO("said: ", said(m));
      REQUIRE(m.verdicts.size() == 1);
      CHECK(m.verdicts.front().culprits == ranks{0, 1});
      CHECK(m.verdicts.front().sentence ==
            "ranks 2, 3 wait in all_reduce #1 of group 0 for ranks 0, 1, which have ended");
      CHECK(named_after_ms(m) < 11.0 * 60'000);
    }
  }

  TEST_CASE("the link of ranks that have nothing to do with one that has ended") {
    training_model::shape s;
    s.begins_warm = true;
    s.groups = {{"dp", {0, 1, 2}}, {"evaluates", {3}}};
    s.per_node = 1;
    training_model m(6, s);
    m.at(1s, [&] { m.end(3); });
    m.at(90s, [&] { m.cut(0); });
    m.run(90s + 120s);
    INFO("said: ", said(m));
    REQUIRE(m.verdicts.size() == 1);
    CHECK(m.verdicts.front().kind == HangKind::LINK);
    CHECK(named_after_ms(m) <= 4'000);
  }

  TEST_CASE("one that is stopped where a rank has ended, and all wait for messages") {
    training_model::shape s;
    s.begins_warm = s.two_by_two = true;
    s.per_node = 1;
    training_model m(6, s);
    m.at(1s, [&] { m.end(0); });
    m.at(10s, [&] { m.freeze(2, activity::stopped()); });
    m.run(90s);
    INFO("said: ", said(m));
    REQUIRE(!m.verdicts.empty());
    CHECK(m.verdicts.front().culprits == ranks{2});
    CHECK(named_after_ms(m) <= 2'000);
  }

  TEST_CASE("a deadlock beside processes that have ended") {
    training_model::shape s;
    s.begins_warm = true;
    s.per_node = 2;
    training_model m(6, s);
    m.at(2'050ms, [&] {
      m.end(0);
      m.end(1);
      m.freeze(3, activity::asleep("train.py:60 (lock_twice)"));
    });
    m.run(8s);
    INFO("said: ", said(m));
    REQUIRE(m.verdicts.size() == 1);
    CHECK(m.verdicts.front().culprits == ranks{3});
    CHECK(named_after_ms(m) <= 2'500);
  }

  TEST_CASE("the link, where ranks wait for messages of each other") {
    training_model::shape s;
    s.begins_warm = s.two_by_two = true;
    s.per_node = 2;
    training_model m(6, s);
    m.at(2s, [&] {
      m.cut(0);
      m.unanswered(1, {"10.0.0.2:4242"});
    });
    m.run(6s);
    INFO("said: ", said(m));
    REQUIRE(m.verdicts.size() == 1);
    CHECK(m.verdicts.front().kind == HangKind::LINK);
    CHECK(m.verdicts.front().culprits.empty());
    CHECK(m.verdicts.front().sentence.find("ranks 0-3 wait in recv of group 0 for ") == 0);
    CHECK(m.verdicts.front().sentence.find("connection to 10.0.0.2:4242 is unanswered") !=
          std::string::npos);
    CHECK(named_after_ms(m) <= 2'000);
    // Without a word of the kernel about it, no link is blamed.
    training_model n(6, s);
    n.at(2s, [&] { n.cut(0); });
    n.run(6s);
    CHECK((n.verdicts.empty() || n.verdicts.front().kind != HangKind::LINK));
  }
}

TEST_SUITE("ended is") {
  TEST_CASE("a rank that sleeps in the middle of a step, and one that is stopped anywhere") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    for (const auto& way : {activity::asleep("acquire()"), activity::stopped()}) {
      training_model::shape s;
      s.begins_warm = true;
      training_model m(7, s, policy);
      m.at(2'050ms, [&] { m.freeze(2, way); });
      m.run(10s);
      CHECK(m.ended == ranks{2});
    }
  }

  TEST_CASE("a deadlock in an event or a queue, in a step or outside of any") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    for (const auto in : {diag::phase::forward, diag::phase::other}) {
      training_model::shape s;
      s.begins_warm = true;
      training_model m(8, s, policy);
      m.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        if (r != 0 || step != 1'010)
          return std::nullopt;
        return interlude{in, 5h, activity::awaits_nothing("wait()"), {}};
      };
      m.run(8s);
      CHECK(m.ended == ranks{0});
    }
  }

  TEST_CASE("a rank whose script is over while the others wait for it, once nothing of it moves") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    for (const bool uploads : {false, true}) {
      training_model::shape s;
      s.begins_warm = true;
      training_model m(8, s, policy);
      m.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        if (r != 0 || step != 1'010)
          return std::nullopt;
        auto over = activity::awaits_nothing("threading.py:1590 (_shutdown)");
        over.ends = true;
        over.io = uploads;
        return interlude{diag::phase::forward, 5h, over, {}};
      };
      m.run(8s);
      CHECK(m.verdicts.empty() == uploads);
      if (!uploads)
        CHECK(m.verdicts.front().sentence.find("rank 0, which has come to the end of its script") !=
              std::string::npos);
      CHECK(m.ended.empty());
      m.run(80s);
      CHECK(m.verdicts.empty() == uploads);
      CHECK(m.ended.empty() == uploads);
    }
  }

  TEST_CASE("what the user's limit is over for, whatever it is at") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    policy.fixed_limit = 5s;
    watch_policy watch;
    watch.fixed_limit = 5s;
    const activity ways[] = {activity::awaits_outside("sleep()"),
                             activity::computes("svd()"),
                             activity::loops("digest()"),
                             activity::asleep("acquire()"),
                             activity::awaits_thread("wait()", diag::thread_role::own),
                             {}};
    for (const auto& way : ways) {
      CAPTURE(way.place);
      training_model::shape s;
      s.begins_warm = true;
      training_model m(8, s, policy, watch);
      m.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        if (r != 0 || step != 1'010)
          return std::nullopt;
        return interlude{diag::phase::other, 5h, way, {}};
      };
      m.run(12s);
      CHECK(m.verdicts.empty() == way.stacks_move);
      CHECK(m.ended.empty() == way.stacks_move);
      m.run(60s);
      CHECK(m.verdicts.size() == 1);
      CHECK(m.ended.empty() == way.stacks_move); // one that moves is told, and not ended
    }
  }

  TEST_CASE("no rank soon that may be at work, and none ever that moves") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    const auto loop = activity::loops("train.py:9 (digest)");
    const struct {
      activity looks;
      diag::phase in;
      duration least, most;
    } cases[] = {
        {loop, diag::phase::forward, 10min, 12min},
        {loop, diag::phase::other, 10min, 12min},
        {activity::asleep("acquire()"), diag::phase::other, 60s, 90s},
        {activity::asleep("acquire()").beside_programs(), diag::phase::other, 10min, 12min},
        {activity::awaits_thread("wait()", diag::thread_role::own), diag::phase::forward, 10min,
         12min},
        {activity::awaits_thread("result()", diag::thread_role::pool), diag::phase::forward, 30min,
         33min},
        {activity::computes("svd()"), diag::phase::forward, 30min, 33min},
        {activity::awaits_outside("recv()"), diag::phase::other, 30min, 33min},
        {activity::awaits_outside("wait4()", diag::awaited::child), diag::phase::other, 30min,
         33min},
        {{}, diag::phase::other, 3h, 3h},
        {loop.starved(0.1), diag::phase::forward, 3h, 3h}};
    for (const auto& c : cases) {
      CAPTURE(c.looks.place);
      for (const bool until_the_least : {true, false}) {
        training_model::shape s;
        s.begins_warm = true;
        training_model m(8, s, policy);
        m.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
          if (r != 0 || step != 1'010)
            return std::nullopt;
          return interlude{c.in, 5h, c.looks, {}};
        };
        m.run(until_the_least ? c.least : c.most);
        CHECK(m.ended.empty() == (until_the_least || c.least == c.most));
      }
    }
  }

  TEST_CASE("no rank in a phase that was survived once, before it has stood longer") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    training_model::shape s;
    s.begins_warm = true;
    training_model m(9, s, policy);
    // Two ranks in turn, so that it is not the rank that has learnt.
    m.before_step = [](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
      if (r != step % 2 || (step != 1'010 && step != 1'041))
        return std::nullopt;
      return interlude{diag::phase::other, 40s, activity::asleep("acquire()"), {}};
    };
    m.run(3min);
    CHECK(m.steps() > 4 * 1'100);
    CHECK(m.verdicts.size() == 1);
    CHECK(m.ended.empty());
  }
}
