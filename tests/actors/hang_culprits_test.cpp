// Hangs of every kind in jobs of every size: the right rank is named, and in time.

#include "tests/actors/training_model.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;
using messages::HangKind;

namespace {

using ranks = std::vector<std::uint32_t>;

training_model::shape job(std::uint32_t size, duration usual = 100ms) {
  training_model::shape s;
  s.ranks = size;
  s.per_node = std::min<std::uint32_t>(size, 8);
  if (size <= 8)
    s.per_node = std::max<std::uint32_t>(1, size / 2);
  s.begins_warm = true;
  s.usual = usual;
  return s;
}

/// Groups of `width` neighbours, then one across: tensor and data parallel.
training_model::shape with_subgroups(training_model::shape s, std::uint32_t width) {
  for (std::uint32_t first = 0; first < s.ranks; first += width) {
    training_model::group g{"tp" + std::to_string(first / width), {}};
    for (auto r = first; r < first + width; ++r)
      g.members.push_back(r);
    s.groups.push_back(std::move(g));
  }
  for (std::uint32_t first = 0; first < width; ++first) {
    training_model::group g{"dp" + std::to_string(first), {}};
    for (auto r = first; r < s.ranks; r += width)
      g.members.push_back(r);
    s.groups.push_back(std::move(g));
  }
  return s;
}

struct expected {
  HangKind kind = HangKind::NOT_ENTERED;
  ranks culprits;
  std::string part; ///< of the sentence
};

/// Runs until the verdict, or until it is too late.
void names(training_model& m, const expected& e, duration calm = 3s) {
  m.run(3s + calm);
  INFO("sentences: ", m.verdicts.empty() ? std::string("none") : m.verdicts.front().sentence);
  REQUIRE(m.began);
  REQUIRE(!m.verdicts.empty());
  const auto& v = m.verdicts.front();
  CHECK(v.kind == e.kind);
  CHECK(v.culprits == e.culprits);
  CHECK(v.sentence.find(e.part) != std::string::npos);
  CHECK(m.verdicts.size() == 1);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(v.at - *m.began).count();
  CHECK(took <= 2'000);
  MESSAGE(took, " ms: ", v.sentence);
}

} // namespace

TEST_SUITE("a hang") {
  TEST_CASE("by SIGSTOP, in jobs of all sizes") {
    for (const std::uint32_t size : {2u, 4u, 64u, 1'000u, 10'000u})
      for (const std::uint32_t culprit : {0u, size - 1}) {
        if (size == 10'000 && (culprit == 0 || sanitized))
          continue;
        CAPTURE(size);
        training_model m(size + culprit, job(size));
        m.at(1'030ms, [&] { m.freeze(culprit, activity::stopped()); });
        names(m, {HangKind::NOT_ENTERED, {culprit}, "kill -CONT"}, 500ms);
      }
  }

  TEST_CASE("by a deadlock, asleep or with the interpreter's lock held") {
    training_model m(1, job(4));
    m.at(2'010ms, [&] { m.freeze(2, activity::asleep("acquire() of threading.py")); });
    names(m, {HangKind::NOT_ENTERED, {2}, "has been in acquire() of threading.py for"});
    CHECK(m.dumps == 2); // nodes
    training_model c(2, job(4));
    c.at(2'010ms, [&] { c.freeze(1, activity::asleep("pthread_mutex_lock()")); });
    names(c, {HangKind::NOT_ENTERED, {1}, "pthread_mutex_lock()"});
  }

  TEST_CASE("by a loop that never ends") {
    training_model m(3, job(4));
    m.at(2'050ms, [&] { m.freeze(3, activity::loops("spin() of train.py:9")); });
    names(m, {HangKind::NOT_ENTERED, {3}, "has been in a loop in spin() of train.py:9"});
  }

  TEST_CASE("of two ranks at once") {
    training_model m(4, job(64));
    m.at(2'050ms, [&] {
      m.freeze(3, activity::stopped());
      m.freeze(40, activity::stopped());
    });
    names(m, {HangKind::NOT_ENTERED, {3, 40}, "for ranks 3, 40: rank"});
  }

  TEST_CASE("by a data loader") {
    activity blocked = activity::asleep("poll() of a queue");
    for (int i = 0; i < 4; ++i)
      blocked.children.push_back({200 + i,
                                  "data loader worker " + std::to_string(i),
                                  'S',
                                  {},
                                  0,
                                  {{200 + i, {}, 7}},
                                  "poll() of a queue"});
    blocked.children[2].state = 'D';
    blocked.children[2].place = "read()";
    training_model m(5, job(4));
    m.at(2'000ms, [&] { m.block_input(2, blocked); });
    names(m, {HangKind::NOT_ENTERED, {2}, "has been in read() of its data loader's worker 2"});
  }

  TEST_CASE("by a full disk under the loader of all ranks") {
    training_model m(6, job(4));
    m.at(2'000ms, [&] {
      for (std::uint32_t r = 0; r < 4; ++r)
        m.block_input(r, activity::asleep("write()"));
    });
    m.run(20s);
    REQUIRE(m.verdicts.size() == 1);
    CHECK(m.verdicts[0].kind == HangKind::ALONE);
    CHECK(m.verdicts[0].culprits == ranks{0, 1, 2, 3});
    CHECK(m.verdicts[0].sentence.find("all ranks have been waiting for their data loaders") == 0);
  }

  TEST_CASE("by another order of collectives") {
    training_model kind(7, job(4));
    kind.at(2'000ms, [&] { kind.mistake_kind(2); });
    names(kind, {HangKind::OTHER_COLLECTIVE, {2}, "broadcast #"});
    training_model group(8, with_subgroups(job(8), 8));
    auto s = job(4);
    s.groups = {{"a", {0, 1, 2, 3}}, {"b", {0, 1, 2, 3}}};
    training_model swapped(9, s);
    swapped.at(2'000ms, [&] { swapped.swap_groups(1); });
    names(swapped, {HangKind::OTHER_COLLECTIVE, {1}, "each waits for the other"});
    training_model skips(10, job(4));
    skips.at(2'000ms, [&] { skips.skip_collectives(1); });
    names(skips, {HangKind::NOT_ENTERED, {1}, "it has left the order of collectives"});
  }

  TEST_CASE("by a link") {
    training_model m(11, job(4));
    m.at(2'000ms, [&] { m.cut(2); });
    names(m, {HangKind::LINK, {}, "none has left it"});
  }

  TEST_CASE("inside of a collective that all have entered") {
    training_model m(12, job(4));
    m.at(2'000ms, [&] { m.freeze_inside(2, activity::stopped()); });
    names(m, {HangKind::ALONE, {2}, "kill -CONT"});
  }

  TEST_CASE("in groups of groups") {
    training_model m(13, with_subgroups(job(64), 8));
    m.at(2'040ms, [&] { m.freeze(21, activity::asleep("f() of a.py:3")); });
    names(m, {HangKind::NOT_ENTERED, {21}, "f() of a.py:3"});
  }

  TEST_CASE("where pages say nothing of collectives") {
    auto s = job(4);
    s.says_collectives = false;
    training_model m(14, s);
    m.at(2'000ms, [&] { m.freeze(2, activity::stopped()); });
    names(m, {HangKind::ALONE, {2}, "kill -CONT"});
    auto t = job(4);
    t.says_ends = false;
    training_model n(15, t);
    n.at(2'000ms, [&] { n.freeze(2, activity::asleep("f()")); });
    names(n, {HangKind::NOT_ENTERED, {2}, "f()"});
  }

  TEST_CASE("of a node that is silent is left to its lease, and that is said") {
    training_model m(16, job(16));
    m.at(2'000ms, [&] {
      m.mute_node(1);
      m.freeze(9, activity::stopped());
    });
    m.run(10s);
    CHECK(m.verdicts.empty());
    REQUIRE(m.notes.size() == 1);
    CHECK(m.notes[0] == "training stands still, and n1 does not say how far its ranks are: its "
                        "lease decides");
  }

  TEST_CASE("that passes is cleared") {
    training_model m(17, job(4));
    m.at(2'000ms, [&] { m.freeze(2, activity::stopped()); });
    m.at(6'000ms, [&] { m.thaw(2); });
    m.run(10s);
    CHECK(m.verdicts.size() == 1);
    CHECK(m.cleared == 1);
  }

  TEST_CASE("ends the culprit's process where the user wants that, once") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    training_model m(18, job(4), policy);
    m.at(2'000ms, [&] { m.freeze(2, activity::stopped()); });
    m.run(60s);
    CHECK(m.ended == ranks{2});
  }

  TEST_CASE("must last longer each time before a process is ended for it") {
    diagnosis_policy policy;
    policy.action = hang_action::act;
    training_model m(20, job(4), policy);
    const auto sleeps = activity::asleep("sleep() of train.py:7");
    m.at(2s, [&] { m.freeze(2, sleeps); });
    m.at(10s, [&] { m.restart(1s); });
    m.run(10'900ms);
    CHECK(m.ended == ranks{2});
    // The next life comes to the same place, in which nothing hangs.
    m.at(19s, [&] { m.freeze(2, sleeps); });
    m.at(26s, [&] { m.thaw(2); });
    m.run(19s);
    CHECK(m.ended == ranks{2});
    m.at(9s, [&] { m.freeze(1, activity::stopped()); });
    m.run(18s);
    CHECK(m.ended == ranks{2});
    m.run(22s);
    CHECK(m.ended == ranks{2, 1});
  }

  TEST_CASE("is no rank that is alive and slow") {
    training_model m(19, job(4));
    m.at(10'000ms, [&] { m.slow_down(1, 2); });
    m.run(9'900ms);
    names(m, {HangKind::STRAGGLER, {1}, "rank 1 is slow"});
    m.slow_down(1, 1);
    m.run(5s);
    CHECK(m.cleared == 1);
  }

  TEST_CASE("at any moment, of any kind, with steps of any length") {
    const char* set = std::getenv("TROUPE_HANG_SEED");
    const auto first = set ? std::strtoull(set, nullptr, 10) : 1;
    for (auto seed = first; seed < first + (set ? 1 : rounds(120)); ++seed) {
      random_source chance(seed);
      const std::uint32_t sizes[] = {2, 4, 6, 16, 64};
      const duration lengths[] = {20ms, 100ms, 300ms, 1s, 3s};
      const auto usual = lengths[chance.below(5)];
      auto s = job(sizes[chance.below(5)], usual);
      if (s.ranks % 4 == 0 && chance.chance(0.5))
        s = with_subgroups(s, s.ranks / 2);
      const auto culprit = static_cast<std::uint32_t>(chance.below(s.ranks));
      const activity ways[] = {activity::stopped(), activity::asleep("acquire()"),
                               activity::loops("spin()"), activity::held("read()")};
      const auto way = ways[chance.below(4)];
      training_model m(seed, s);
      m.at(2 * usual + std::chrono::microseconds(chance.below(3'000'000)),
           [&] { m.freeze(culprit, way); });
      m.run(2 * usual + 3s + std::max<duration>(2s, 3 * usual));
      INFO("repeat with TROUPE_HANG_SEED=", seed, "; ", s.ranks, " ranks, steps of ",
           milliseconds_of(usual), " ms, culprit ", culprit, " in ", way.state,
           "; said: ", m.verdicts.empty() ? std::string("nothing") : m.verdicts.front().sentence);
      CHECK(m.verdicts.size() == 1);
      if (m.verdicts.empty())
        continue;
      const bool named = m.verdicts.front().culprits == ranks{culprit};
      CHECK(named);
      CHECK(milliseconds_of(m.verdicts.front().at - *m.began) <=
            std::max(2'000.0, 3 * milliseconds_of(usual)));
    }
  }
}
