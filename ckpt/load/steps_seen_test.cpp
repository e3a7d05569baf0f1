// What a load sees of a place whose storage fails at one step.
#include "ckpt/load/steps_seen.hpp"

#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

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
  std::vector<std::string> passed_over(const std::optional<save_id>& than) {
    const auto found = steps_passed_over(storage, than);
    REQUIRE(found);
    std::vector<std::string> all;
    for (const auto& one : *found)
      all.push_back(std::to_string(one.step) + ": " + one.why);
    return all;
  }
};

const save_id of_10{generation{1}, 1}, of_20{generation{1}, 2};

} // namespace

TEST_CASE("a step whose manifest cannot be read now is not passed over, until that is given up") {
  saved_twice j;
  j.fail("get", "20/.troupe-manifest.json", "input/output error");
  rank_view view;
  const auto failed = error_of(see_steps(j.storage, 64, view));
  CHECK(failed.code == errc::unavailable);
  CHECK(failed.what == "step 20 cannot be read: input/output error");
  CHECK(error_of(find_shard(j.storage, {of_20, 20}, 0)).code == errc::unavailable);

  CHECK(j.seen(unreadable_step::is_none) == std::vector<std::uint64_t>{10});
  CHECK(j.passed_over(of_10) == std::vector<std::string>{"20: input/output error"});
  CHECK(j.passed_over({}) == std::vector<std::string>{"20: input/output error"});

  j.place.fault = nullptr;
  CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{20, 10});
  CHECK(j.passed_over(of_10).empty());
}

TEST_CASE("a damaged one is passed over at once, and told if it is newer than what was loaded") {
  saved_twice j;
  SUBCASE("its manifest") {
    j.place.files["20/.troupe-manifest.json"] = "{";
    CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{10});
    CHECK(j.passed_over(of_10).size() == 1);
    CHECK(j.passed_over(of_20).empty());
  }
  SUBCASE("its marker, which then says nothing of its save") {
    j.place.files[".troupe/steps/20"].back() ^= 1;
    CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{10});
    CHECK(j.passed_over(of_20).size() == 1);
  }
  CHECK(j.passed_over({}).size() == 1);
}

TEST_CASE("what was given up is passed over without a word") {
  saved_twice j;
  auto saver = j.opened();
  REQUIRE(j.begin(saver, 30));
  CHECK(j.seen(unreadable_step::is_an_error) == std::vector<std::uint64_t>{20, 10});
  CHECK(j.passed_over({}).empty());
}
