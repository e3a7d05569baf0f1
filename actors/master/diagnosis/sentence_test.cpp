#include "actors/master/diagnosis/sentence.hpp"

#include "actors/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using diag::phase;
using messages::HangKind;

namespace {

using ranks = std::vector<std::uint32_t>;

/// Four ranks, of which rank 2 is the culprit; the others wait in all_reduce #4812 of group tp0.
struct scene {
  scene() {
    names.number_of("tp0", 1, 4);
    names.number_of("dp", 2, 4);
    v.kind = HangKind::NOT_ENTERED;
    v.culprits = {2};
    v.first = 2;
    v.waits = {0, 4812, diag::collective::all_reduce, {0, 1, 3}, 14s};
    v.stood = 14s;
    f().pid = 4711;
    f().idle = 14s;
    f().state = 'S';
    f().motion = rank_motion::stands;
  }
  rank_facts& f() { return all[2]; }
  std::string text() const { return sentence_of(v, all, names); }

  std::vector<rank_facts> all{4};
  communicator_names names;
  verdict v;
};

struct row {
  const char* what;
  void (*set)(scene&);
  const char* sentence;
};

const std::string waits = "ranks 0, 1, 3 wait in all_reduce #4812 of group tp0 for rank 2, which ";

const row table[] = {
    {"in a place of its loader",
     [](scene& s) {
       s.f().phase_now = phase::input;
       s.f().place = "read() of its data loader's worker 7";
     },
     "has been in read() of its data loader's worker 7 for 14 s"},
    {"in its loader, nothing more is known", [](scene& s) { s.f().phase_now = phase::input; },
     "has been waiting for its data loader for 14 s"},
    {"stopped",
     [](scene& s) {
       s.f().state = 'T';
       s.f().idle = 3s;
     },
     "has been stopped (SIGSTOP) for 3 s: kill -CONT 4711 lets it go on"},
    {"held by the kernel",
     [](scene& s) {
       s.f().state = 'D';
       s.f().place = "read()";
     },
     "the kernel has held in read() for 14 s: look at its disk or network file system, and at "
     "dmesg"},
    {"in a loop",
     [](scene& s) {
       s.f().state = 'R';
       s.f().motion = rank_motion::spins;
       s.f().cpu_permille = 998;
       s.f().place = "train.py:9 (spin)";
       s.f().idle = 1'700ms;
     },
     "has been in a loop in train.py:9 (spin) for 1.7 s (99 % of a core, always in the same "
     "functions)"},
    {"in a loop that gets too little of a core",
     [](scene& s) {
       s.f().state = 'R';
       s.f().motion = rank_motion::spins;
       s.f().cpu_permille = 351;
       s.f().idle = 1'700ms;
     },
     "has been in a loop for 1.7 s (35 % of a core, and wants more, always in the same functions)"},
    {"asleep in a phase",
     [](scene& s) {
       s.f().phase_now = phase::backward;
       s.f().place = "threading.py:320 (wait)";
     },
     "has been in threading.py:320 (wait) for 14 s, in its backward pass"},
    {"in a checkpoint", [](scene& s) { s.f().phase_now = phase::checkpoint; },
     "has been in a checkpoint for 14 s"},
    {"in an evaluation", [](scene& s) { s.f().phase_now = phase::evaluation; },
     "has been in its evaluation for 14 s"},
    {"in a phase of the user's",
     [](scene& s) {
       s.f().phase_now = phase::user;
       s.f().user_phase = "rollout";
       s.f().idle = 200s;
     },
     "has been in its phase rollout for 3 min 20 s"},
    {"nothing is known", [](scene&) {}, "has stood still for 14 s"},
    {"it goes on alone",
     [](scene& s) {
       s.v.goes_on = true;
       s.f().steps_when_entered = 100;
       s.f().steps = 118;
     },
     "has made 18 steps meanwhile without it: it has left the order of collectives"},
    {"it moves",
     [](scene& s) {
       s.v.moves = true;
       s.f().motion = rank_motion::moves;
       s.f().idle = 12min;
       s.f().place = "eval.py:3 (score)";
     },
     "moves, in eval.py:3 (score), but has reported nothing for 12 min; troupe.step() or a named "
     "phase in the script would tell more"},
    {"in one call of C",
     [](scene& s) {
       s.f().motion = rank_motion::works;
       s.f().cpu_permille = 998;
       s.f().idle = 7min;
       s.f().place = "metric.py:3 (svd)";
     },
     "has been in metric.py:3 (svd) for 7 min (99 % of a core)"},
    {"a service that does not answer",
     [](scene& s) {
       s.f().motion = rank_motion::works;
       s.f().idle = 7min;
       s.f().place = "recv() at service.py:3 (ask)";
     },
     "has been in recv() at service.py:3 (ask) for 7 min"},
    {"its script is over",
     [](scene& s) {
       s.v.moves = true;
       s.f().motion = rank_motion::ends;
       s.f().idle = 12min;
     },
     "has come to the end of its script and has not ended for 12 min"},
    {"it has no processor",
     [](scene& s) {
       s.v.moves = true;
       s.f().motion = rank_motion::starves;
       s.f().phase_now = phase::backward;
       s.f().idle = 12min;
     },
     "has waited for a processor for 12 min, in its backward pass: its machine has more to run "
     "than it has processors"},
};

} // namespace

TEST_SUITE("sentence") {
  TEST_CASE("says what the rank does for which the others wait") {
    for (const auto& each : table) {
      CAPTURE(each.what);
      scene s;
      each.set(s);
      CHECK(s.text() == waits + each.sentence);
    }
  }

  TEST_CASE("names several culprits, and one of them in detail") {
    scene s;
    s.v.culprits = {1, 2};
    s.v.waits.ranks = {0, 3};
    s.f().state = 'D';
    s.f().place = "write()";
    CHECK(s.text() ==
          "ranks 0, 3 wait in all_reduce #4812 of group tp0 for ranks 1, 2: the kernel has held "
          "rank 2 in write() for 14 s: look at its disk or network file system, and at dmesg");
  }

  TEST_CASE("says in which order ranks differ") {
    scene s;
    s.v.kind = HangKind::OTHER_COLLECTIVE;
    s.v.other = {0, 4812, diag::collective::broadcast, {2}, 14s};
    CHECK(s.text() == "rank 2 has entered broadcast #4812 of group tp0 where ranks 0, 1, 3 are in "
                      "all_reduce: the order of collectives differs");
    s.v.other = {1, 7, diag::collective::all_gather, {2}, 14s};
    CHECK(s.text() == "rank 2 waits in all_gather #7 of group dp, and ranks 0, 1, 3 wait in "
                      "all_reduce #4812 of group tp0: each waits for the other, since the order "
                      "of collectives differs");
    s.v.other = s.v.waits;
    CHECK(s.text() == "rank 2 has entered all_reduce #4812 of group tp0 with another size than "
                      "ranks 0, 1, 3: none of them can leave it");
  }

  TEST_CASE("names a link as far as it is known") {
    scene s;
    s.v.kind = HangKind::LINK;
    s.v.culprits = {};
    s.v.waits.ranks = {0, 1, 2, 3};
    s.v.other = s.v.waits;
    CHECK(s.text() == "ranks 0-3 have all entered all_reduce #4812 of group tp0 and none has left "
                      "it for 14 s: look at the network between their nodes");
    s.v.culprits = {2};
    s.v.slow_peers = {"10.0.0.2:4242"};
    CHECK(s.text() == "ranks 0-3 have all entered all_reduce #4812 of group tp0 and none has left "
                      "it for 14 s: the connection to 10.0.0.2:4242 is unanswered, most of all "
                      "those of rank 2");
  }

  TEST_CASE("names the ranks behind a link that are a collective behind the others") {
    scene s;
    s.v.kind = HangKind::LINK;
    s.v.culprits = {};
    s.v.other = {0, 4811, diag::collective::all_reduce, {2}, 15s};
    CHECK(s.text() == "rank 2 has not left all_reduce #4811 of group tp0, which all have entered, "
                      "for 15 s: look at the network between their nodes");
  }

  TEST_CASE("says that a rank stands alone, or all do") {
    scene s;
    s.v.kind = HangKind::ALONE;
    s.v.waits = {};
    s.f().state = 'T';
    CHECK(s.text() == "rank 2 has been stopped (SIGSTOP) for 14 s: kill -CONT 4711 lets it go on");
    s.v.culprits = {0, 1, 2, 3};
    s.v.all_alike = true;
    s.f().state = 'S';
    s.f().phase_now = phase::input;
    s.f().place = "write()";
    CHECK(s.text() ==
          "all ranks have been waiting for their data loaders for 14 s: rank 2 in write()");
  }

  TEST_CASE("says how slow a rank is") {
    slow_rank slow{5, 2.08, 1.96, 210ms, 101ms};
    CHECK(sentence_of(slow, {}) ==
          "rank 5 is slow: it works for 210 ms in a step where the others need 101 ms (2.1 times "
          "as long, and 2.0 times as long as before)");
    slow.by_its_past = 0;
    CHECK(sentence_of(slow, {}) == "rank 5 is slow: it works for 210 ms in a step where the others "
                                   "need 101 ms (2.1 times as long)");
  }

  TEST_CASE("folds runs of ranks, and is bounded") {
    CHECK(rank_runs({}) == "");
    CHECK(rank_runs({5}) == "5");
    CHECK(rank_runs({0, 1}) == "0, 1");
    CHECK(rank_runs({0, 1, 2, 3, 5}) == "0-3, 5");
    ranks odd;
    for (std::uint32_t r = 1; r < 2'000; r += 2)
      odd.push_back(r);
    CHECK(rank_runs(odd) == "1, 3, 5, 7, 9, 11, 13, 15 and 992 more");
    scene s;
    s.f().place = std::string(5'000, 'x');
    CHECK(s.text().size() == limits::sentence_max);
  }
}
