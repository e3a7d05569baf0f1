// Days of training in which nothing hangs: no rank is ever named.
//
// Each part is one thing that looks like a hang and is none. TROUPE_CORPUS_HOURS sets how much
// training is simulated in all; TROUPE_CORPUS_SEED repeats what a failure names.

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
constexpr int parts = 18;

double hours() {
  const char* set = std::getenv("TROUPE_CORPUS_HOURS");
  return set ? std::max(0.01, std::atof(set)) : usual_hours;
}

std::uint64_t seed_of(std::uint64_t part) {
  const char* set = std::getenv("TROUPE_CORPUS_SEED");
  return set ? std::strtoull(set, nullptr, 10) : 1'700 + part;
}

/// Of each part.
duration share() {
  return std::chrono::duration_cast<duration>(
      std::chrono::duration<double>(hours() * 3'600 / parts));
}

struct corpus {
  explicit corpus(std::uint64_t part, training_model::shape s = {})
      : seed(seed_of(part)), chance(seed * 77 + 1), model(seed, shaped(std::move(s))) {}

  static training_model::shape shaped(training_model::shape s) {
    s.per_node = std::max<std::uint32_t>(1, s.ranks / 2);
    return s;
  }
  duration between(duration least, duration most) {
    const auto span = static_cast<double>((most - least).count());
    return least + duration(static_cast<duration::rep>(chance.unit() * span));
  }
  /// All of it went on, and none was named.
  void expect_calm(duration how_long = share()) {
    model.run(how_long);
    INFO("repeat with TROUPE_CORPUS_SEED=", seed, "; the first: ",
         model.verdicts.empty() ? std::string("none") : model.verdicts.front().sentence,
         "; the first note: ", model.notes.empty() ? std::string("none") : model.notes.front());
    CHECK(model.verdicts.empty());
    CHECK(model.ended.empty());
    CHECK(model.steps() > 0);
    CHECK(model.reports > 0);
  }

  std::uint64_t seed;
  random_source chance;
  training_model model;
};

activity compiles() {
  return {'R', 1, false, true, false, "inductor compile_fx()", {}, false};
}
activity writes_file() {
  return {'S', 0.05, true, false, false, "write() of torch.save", {}, false};
}

} // namespace

TEST_SUITE("no hang is") {
  TEST_CASE("steps that all take the same time") {
    corpus c(0);
    c.expect_calm();
  }

  TEST_CASE("a first step that compiles for five minutes, on all ranks or on one") {
    for (const bool all : {true, false}) {
      corpus c(1);
      c.model.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        if (step == 0 && (all || r == 1))
          return interlude{diag::phase::other, 5min, compiles(), {}};
        return std::nullopt;
      };
      c.expect_calm(share() / 2 + 6min);
    }
  }

  TEST_CASE("garbage collection for a second") {
    corpus c(2);
    c.model.before_step = [&](std::uint32_t, std::uint64_t step) -> std::optional<interlude> {
      if (step < 10 || !c.chance.chance(0.005))
        return std::nullopt;
      return interlude{diag::phase::other, 1s, activity::loops("gc_collect_main()"), {}};
    };
    c.expect_calm();
  }

  TEST_CASE("a checkpoint of half a minute that is marked") {
    corpus c(3);
    c.model.before_step = [](std::uint32_t, std::uint64_t step) -> std::optional<interlude> {
      if (step % 500 != 499)
        return std::nullopt;
      return interlude{diag::phase::checkpoint, 30s, activity::held("write()"), {}};
    };
    c.expect_calm(share() + 3min);
  }

  TEST_CASE("a checkpoint by other means on rank 0, while the others wait in a barrier") {
    corpus c(4);
    c.model.before_step = [](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
      if (step % 500 != 499 || r != 0)
        return std::nullopt;
      return interlude{diag::phase::other, 30s, writes_file(), {}};
    };
    c.expect_calm(share() + 3min);
  }

  TEST_CASE("the same on a slow disk, held by the kernel in fsync()") {
    corpus c(5);
    c.model.before_step = [](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
      if (step % 500 != 499 || r != 0)
        return std::nullopt;
      return interlude{diag::phase::other, 25s, activity::held("fsync()"), {}};
    };
    c.expect_calm(share() + 3min);
  }

  TEST_CASE("an evaluation of a minute that is marked") {
    corpus c(6);
    c.model.before_step = [](std::uint32_t, std::uint64_t step) -> std::optional<interlude> {
      if (step % 1'000 != 999)
        return std::nullopt;
      return interlude{diag::phase::evaluation, 1min, {}, {}};
    };
    c.expect_calm(share() + 3min);
  }

  TEST_CASE("an evaluation that is not marked: batches are loaded, or stacks change") {
    for (const bool batches : {true, false}) {
      corpus c(7);
      c.model.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        if (step % 1'000 != 999 || (!batches && r != 0))
          return std::nullopt;
        return interlude{diag::phase::other, 2min, {}, batches ? duration(200ms) : duration{}};
      };
      c.expect_calm(share() / 2 + 5min);
    }
  }

  TEST_CASE("a loader whose batches come late now and then, very late rarely") {
    corpus c(8);
    c.model.input = [&](std::uint32_t, std::uint64_t) -> duration {
      // Pareto: one of a thousand takes half a second, one of a hundred thousand several.
      const double tail = 2.0 / std::pow(1.0 - c.chance.unit(), 0.8);
      return std::chrono::duration_cast<duration>(
          std::chrono::duration<double, std::milli>(std::min(tail, 4'000.0)));
    };
    c.expect_calm();
  }

  TEST_CASE("a step that is regularly ten times as long") {
    for (const bool one : {false, true}) {
      training_model::shape s;
      s.usual = 300ms;
      corpus c(9, s);
      c.model.before_step = [&](std::uint32_t r, std::uint64_t step) -> std::optional<interlude> {
        if (step % 200 != 199 || (one && r != 0))
          return std::nullopt;
        return interlude{diag::phase::other, 3s, {}, {}};
      };
      c.expect_calm(share() / 2);
    }
  }

  TEST_CASE("a debugger that is attached for an hour") {
    for (const bool in_process : {false, true}) {
      corpus c(10);
      c.model.at(20s, [&] {
        auto stopped = in_process ? activity::asleep("pdb.py:100 (interaction)")
                                  : activity::asleep("train.py:3");
        stopped.traced = !in_process;
        c.model.freeze(2, stopped);
      });
      c.model.at(20s + 1h, [&] { c.model.thaw(2); });
      c.expect_calm(1h + 3min);
    }
  }

  TEST_CASE("a laptop that sleeps for eight hours, on the clock or beside it") {
    corpus c(11);
    c.model.at(30s, [&] { c.model.pause_all(8h); });
    c.model.at(30s + 8h + 2min, [&] {
      c.model.machine_slept(8h);
      c.model.pause_all(300ms);
    });
    c.expect_calm(8h + 4min);
  }

  TEST_CASE("one node that does not run for a second and a half, now and then") {
    corpus c(12);
    for (int i = 1; i < 40; ++i)
      c.model.at(i * 15s, [&, i] { c.model.pause_node(i % 2, 1'500ms); });
    c.expect_calm(11min);
  }

  TEST_CASE("a generation that is restarted again and again") {
    corpus c(13);
    for (int i = 1; i < 20; ++i)
      c.model.at(i * 30s, [&] { c.model.restart(c.between(100ms, 8s)); });
    c.expect_calm(12min);
  }

  TEST_CASE("a network that does not answer for a second") {
    corpus c(14);
    c.model.network = [&](std::uint64_t) -> duration {
      return c.chance.chance(0.002) ? 1s : 500us;
    };
    c.expect_calm();
  }

  TEST_CASE("sequences of different length, alike for all ranks or not") {
    for (const bool alike : {true, false}) {
      training_model::shape s;
      s.usual = 500ms;
      corpus c(15, s);
      c.model.compute = [&, alike](std::uint32_t, std::uint64_t step) -> duration {
        random_source of_step(c.seed + step);
        return alike ? 100ms + std::chrono::microseconds(of_step.below(800'000))
                     : c.between(100ms, 900ms);
      };
      c.expect_calm(share() / 2);
    }
  }

  TEST_CASE("all ranks that slowly become slower together") {
    corpus c(16);
    c.model.compute = [](std::uint32_t, std::uint64_t step) -> duration {
      return 60ms + std::chrono::microseconds(std::min<std::uint64_t>(step * 10, 200'000));
    };
    c.expect_calm();
  }

  TEST_CASE("a script that reports nothing") {
    corpus c(17);
    c.model.before_step = [](std::uint32_t, std::uint64_t) -> std::optional<interlude> {
      return interlude{diag::phase::other, 10h, activity::asleep("sleep()"), {}};
    };
    c.model.run(1h);
    CHECK(c.model.verdicts.empty());
  }

  TEST_CASE("a job of a thousand ranks that wait for each other in steps of different length") {
    training_model::shape s;
    s.ranks = 1'000;
    s.begins_warm = true;
    s.usual = 500ms;
    corpus c(18);
    training_model m(c.seed, [&] {
      s.per_node = 8;
      return s;
    }());
    m.compute = [&](std::uint32_t, std::uint64_t) { return c.between(100ms, 900ms); };
    m.run(20s);
    CHECK(m.verdicts.empty());
  }
}
