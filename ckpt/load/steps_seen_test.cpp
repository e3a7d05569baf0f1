// What a load sees of a place whose storage fails at one step.
#include "ckpt/load/steps_seen.hpp"

#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

namespace {

/// Steps 10 and 20 are complete.
struct saved_twice : two_ranks {
  saved_twice() {
    auto saver = opened();
    for (const auto step : {10, 20})
      REQUIRE(complete(saver, step));
  }

  std::vector<std::uint64_t> seen(unreadable_step what) {
    rank_view view;
    REQUIRE(see_steps(storage, 64, view, what));
    std::vector<std::uint64_t> steps;
    for (const auto& one : view.disk)
      steps.push_back(one.id.step);
    return steps;
  }
  std::vector<std::string> passed_over(const std::optional<state_id>& than) {
    const auto found = steps_passed_over(storage, than);
    REQUIRE(found);
    std::vector<std::string> all;
    for (const auto& one : *found)
      all.push_back(one.what + ": " + one.why + (one.was_complete ? "" : " (told)"));
    return all;
  }
};

const state_id of_10{{generation{1}, 1}, 10}, of_20{{generation{1}, 2}, 20};

} // namespace

TEST_CASE("a step whose manifest cannot be read now is not passed over, until that is given up") {
  saved_twice j;
  j.fail("get", "20/troupe-manifest.json", "input/output error");
  rank_view view;
  const auto failed = error_of(see_steps(j.storage, 64, view));
  CHECK(failed.code == errc::unavailable);
  CHECK(failed.what == "step 20 cannot be read: input/output error");
  CHECK(error_of(find_shard(j.storage, of_20, 0)).code == errc::unavailable);

  CHECK(j.seen(unreadable_step::is_none) == std::vector<std::uint64_t>{10});
  CHECK(j.passed_over(of_10) == std::vector<std::string>{"step 20: input/output error"});
  CHECK(j.passed_over({}) == std::vector<std::string>{"step 20: input/output error"});

  j.place.fault = nullptr;
  CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{20, 10});
  CHECK(j.passed_over(of_10).empty());
}

TEST_CASE("a damaged one is passed over at once, and told if it is newer than what was loaded") {
  saved_twice j;
  SUBCASE("its manifest") {
    j.place.files["20/troupe-manifest.json"] = "{";
    CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{10});
    CHECK(j.passed_over(of_10).size() == 1);
    CHECK(j.passed_over(of_20).empty());
    CHECK(j.passed_over({}).size() == 1);
  }
  SUBCASE("its marker alone is no loss, as its manifest says all of it") {
    j.place.files[".troupe/steps/20"].back() ^= 1;
    CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{20, 10});
    CHECK(j.passed_over({}).empty());
    step_catalog saver = j.opened();
    REQUIRE(saver.restore_markers());
    CHECK(j.place.files[".troupe/steps/20"] == "20\n1 2 4a9ed994\n");
  }
}

TEST_CASE("what was begun and is not complete is told, and is no reason not to begin") {
  saved_twice j;
  auto saver = j.opened();
  REQUIRE(j.begin(saver, 30));
  CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{20, 10});
  CHECK(j.passed_over(of_20) == std::vector<std::string>{"step 30: it has no manifest (told)"});
  // The process that loads has begun it itself, or a newer state was in memory.
  CHECK(j.passed_over(state_id{{generation{1}, 3}, 30}).empty());
}

TEST_CASE("a step that a tracker names is not passed over without a word, whatever of it is gone") {
  struct row {
    const char* gone;
    std::vector<std::string> told;
  };
  const row rows[] = {
      {"20/troupe-manifest.json",
       {"step 20: it has no manifest, though 'dlrover_latest.txt' names it"}},
      {"20", {"step 20: it has no manifest, though 'dlrover_latest.txt' names it"}},
      {".troupe", {}}, // the manifests say all
      {"20 .troupe/steps/20",
       {"step 20: 'dlrover_latest.txt' names it, and it is not there (told)"}},
      {"20/troupe-manifest.json .troupe",
       {"step 20: 'dlrover_latest.txt' names it, and '20' has no manifest of Troupe's (told)"}},
  };
  for (const auto& r : rows) {
    CAPTURE(r.gone);
    saved_twice j;
    std::istringstream names(r.gone);
    for (std::string name; names >> name;)
      REQUIRE(j.storage.remove(name));
    const bool found = r.told.empty();
    CHECK(j.seen(unreadable_step::is_an_error).front() == (found ? 20 : 10));
    CHECK(j.passed_over(found ? of_20 : of_10) == r.told);
  }
}
