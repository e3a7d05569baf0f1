// Days of silence that is no hang: rank 0 alone at work, interpreters that close, a machine with
// more to run than it has processors. No rank is named, and none is ended.
//
// What is done, for how long and by which rank follows from a seed. TROUPE_CORPUS_HOURS sets how
// much training is simulated in all; TROUPE_CORPUS_SEED repeats what a failure names.

#include "tests/actors/training_model.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

constexpr double usual_hours = sanitized ? 1 : 24;
constexpr int parts = 3, seeds = 4;

duration share() {
  const char* set = std::getenv("TROUPE_CORPUS_HOURS");
  const double hours = set ? std::max(0.1, std::atof(set)) : usual_hours;
  return std::chrono::duration_cast<duration>(
      std::chrono::duration<double>(hours * 3'600 / parts / seeds));
}

diagnosis_policy that_acts() {
  diagnosis_policy p;
  p.action = hang_action::act;
  return p;
}

training_model::shape job(random_source& chance) {
  const duration lengths[] = {20ms, 100ms, 1s};
  training_model::shape s;
  s.ranks = static_cast<std::uint32_t>(2 + chance.below(5));
  s.per_node = std::max<std::uint32_t>(1, s.ranks / 2);
  s.usual = lengths[chance.below(3)];
  s.without_steps = chance.chance(0.5);
  return s;
}

/// From a second to five minutes, the short ones as often as the long ones.
duration some_time(random_source& chance) {
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(1'000 * std::pow(300.0, chance.unit())));
}

/// Work that no hook sees: a metric, a factorization, a digest, a service, a program.
activity some_work(random_source& chance) {
  activity child = activity::awaits_outside("wait4() at eval.py:9 (run)", diag::awaited::child);
  child.children = {{7, "", 'R', {}, 0, {}, "eval.py"}};
  child.children_move = chance.chance(0.5);
  activity file = activity::held("write() at file.py:3 (dump)");
  file.io = true;
  const activity kinds[] = {activity::awaits_thread("result()", diag::thread_role::pool),
                            activity::computes("train.py:40 (svd)"),
                            activity::loops("train.py:44 (digest)"),
                            activity::awaits_outside("recv() at service.py:4 (ask)"),
                            activity::awaits_outside("sleep() at wait.py:2 (poll)"),
                            child,
                            file,
                            activity{}};
  auto work = kinds[chance.below(8)];
  if (chance.chance(0.3))
    work = work.beside_programs();
  return work;
}

/// …which rank 0 does now and then, while the others wait.
std::optional<interlude> alone(random_source& chance, std::uint32_t r) {
  if (r != 0 || !chance.chance(0.01))
    return std::nullopt;
  auto work = some_work(chance);
  // A loop of Python in the middle of a step is one that hangs, as far as anybody can see.
  const bool in_step = !work.line_moves && chance.chance(0.5);
  return interlude{
      in_step ? diag::phase::forward : diag::phase::other, some_time(chance), std::move(work), {}};
}

/// Runs, and nothing is said.
void expect_calm(training_model& m, std::uint64_t seed) {
  m.run(share());
  INFO("repeat with TROUPE_CORPUS_SEED=", seed,
       "; the first: ", m.verdicts.empty() ? std::string("none") : m.verdicts.front().sentence,
       "; the first note: ", m.notes.empty() ? std::string("none") : m.notes.front());
  CHECK(m.verdicts.empty());
  CHECK(m.notes.empty());
  CHECK(m.ended.empty());
  CHECK(m.steps() > 0);
}

template<class Case>
void each_seed(std::uint64_t first, Case run) {
  const char* set = std::getenv("TROUPE_CORPUS_SEED");
  if (set)
    first = std::strtoull(set, nullptr, 10);
  for (auto seed = first; seed < first + (set ? 1 : seeds); ++seed) {
    random_source chance(seed);
    training_model m(seed, job(chance), that_acts());
    run(m, chance);
    expect_calm(m, seed);
  }
}

} // namespace

TEST_SUITE("nothing is said of") {
  TEST_CASE("work of rank 0 alone, for a second or for minutes, between steps or in one") {
    each_seed(2'100, [](training_model& m, random_source& chance) {
      m.before_step = [&chance](std::uint32_t r, std::uint64_t) { return alone(chance, r); };
    });
  }

  TEST_CASE("interpreters that close, all together or while bytes flow, and for a while") {
    each_seed(2'200, [](training_model& m, random_source& chance) {
      m.before_step = [&chance](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        random_source of_all(step);
        if (!of_all.chance(0.005))
          return std::nullopt;
        const bool together = of_all.chance(0.5);
        const auto how_long = some_time(of_all);
        if (!together && r != 0 && chance.chance(0.3))
          return std::nullopt;
        auto closes = chance.chance(0.5) ? activity::loops("") : activity::asleep("");
        closes.ends = true;
        // The others wait for it: it finishes an upload, or what it was computing.
        if (!together)
          closes.io = true;
        return interlude{chance.chance(0.5) ? diag::phase::other : diag::phase::forward,
                         together ? how_long : some_time(chance),
                         closes,
                         {}};
      };
    });
  }

  TEST_CASE("a job that is over, or one node of it, when a standstill has just been reported") {
    // A collective that took minutes may have ended just before, unseen.
    for (const bool all : {true, false})
      for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        random_source chance(seed);
        training_model::shape s;
        s.begins_warm = true;
        s.per_node = all ? 4 : 2;
        training_model m(seed, s, that_acts());
        m.slowest_message = 100ms;
        const auto work = activity::computes("train.py:40 (svd)");
        m.at(1s, [&] { m.freeze(0, work); });
        // The limit is 1.2 s: it is looked at and reported shortly after.
        const duration most = seed % 2 == 0 ? 1'500ms : 150s;
        const auto ends = 2'200ms + std::chrono::milliseconds(chance.below(
                                        static_cast<std::uint64_t>(milliseconds_of(most))));
        m.at(ends - 10ms, [&] { m.thaw(0); });
        m.at(ends, [&] { m.end(0); });
        m.at(ends + std::chrono::milliseconds(chance.below(100)), [&] { m.end(1); });
        if (all)
          m.at(ends + 100ms, [&] {
            m.end(2);
            m.end(3);
          });
        m.run(ends + (all ? 90s : 30s));
        INFO("seed ", seed, "; ", m.notes.empty() ? std::string() : m.notes.front());
        CHECK(m.verdicts.empty());
        CHECK(m.notes.empty());
      }
  }

  TEST_CASE(
      "ranks that all stand alike after the others' end, but that they do, and none is ended") {
    training_model::shape s;
    s.begins_warm = true;
    s.per_node = 2;
    training_model m(4, s, that_acts());
    m.at(1s, [&] {
      m.end(0);
      m.end(1);
      m.freeze(2, activity::asleep("acquire()"));
      m.freeze(3, activity::asleep("acquire()"));
    });
    m.run(50s);
    CHECK(m.notes.empty());
    m.run(10min);
    CHECK(m.ended.empty());
  }

  TEST_CASE("an order to end after a hang was told, which is no end of the hang") {
    for (const std::uint32_t first : {0, 1}) {
      training_model::shape s;
      s.begins_warm = true;
      s.per_node = 2;
      training_model m(4, s);
      m.at(1s, [&] { m.freeze(3, activity::asleep("acquire()")); });
      m.at(90s, [&] { m.drain_node(first); });
      m.at(100s, [&] { m.drain_node(1 - first); });
      m.run(180s);
      REQUIRE(m.verdicts.size() == 1);
      CHECK(m.cleared == 0);
      INFO(m.notes.back());
      CHECK(m.notes.size() == 1);
    }
  }

  TEST_CASE("a machine with five times as much to run as it has processors") {
    each_seed(2'300, [](training_model& m, random_source& chance) {
      // Now and then most of its time is others' for half a minute, and a step takes as long.
      m.compute = [&m, &chance](std::uint32_t, std::uint64_t step) -> duration {
        if (m.now.time_since_epoch() / 30s % 3 != 0)
          return 20ms;
        random_source of_all(step);
        const auto ms = std::pow(30'000.0, of_all.unit()) * (0.8 + 0.2 * chance.unit());
        return 20ms + std::chrono::milliseconds(static_cast<std::int64_t>(ms));
      };
      // Threads that send and receive are kept waiting as well, in collectives that all have
      // entered.
      m.network = [&m, &chance](std::uint64_t) -> duration {
        if (m.now.time_since_epoch() / 30s % 3 != 0 || !chance.chance(0.05))
          return 1ms;
        return std::min<duration>(30s - m.now.time_since_epoch() % 30s,
                                  std::chrono::milliseconds(chance.below(8'000)));
      };
      m.before_step = [&chance](std::uint32_t r, std::uint64_t) { return alone(chance, r); };
      // The actors wait for processors as well.
      m.slowest_message = 300ms;
      m.machine = [&m, &chance](std::uint32_t, activity looks) {
        if (m.now.time_since_epoch() / 30s % 3 != 0)
          return looks;
        looks.had = chance.chance(0.2) ? 0 : 0.08 + 0.15 * chance.unit();
        looks.taken = 0.5 * chance.unit();
        looks.stacks_move &= chance.chance(0.5);
        looks.delayed = 1 + chance.unit();
        return looks;
      };
    });
  }
}
