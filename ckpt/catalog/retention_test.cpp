#include "ckpt/catalog/retention.hpp"

#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

namespace {

using numbers = std::vector<std::uint64_t>;

save_id save(std::uint64_t number, std::uint64_t of_generation = 1) {
  return {generation{of_generation}, number};
}
step_seen complete(std::uint64_t step, save_id by) {
  return {step, step_state::complete, by, true};
}
step_seen complete_here(std::uint64_t step, save_id by) {
  return {step, step_state::complete, by, false};
}
step_seen incomplete(std::uint64_t step, save_id by) {
  return {step, step_state::incomplete, by};
}

} // namespace

TEST_CASE("which complete steps go") {
  const std::vector<step_seen> five = {complete(10, save(1)), complete(20, save(2)),
                                       complete(30, save(3)), complete(40, save(4)),
                                       complete(50, save(5))};
  struct row {
    const char* what;
    std::vector<step_seen> steps;
    retention keep;
    numbers going;
  };
  const row rows[] = {
      {"without a rule all stay", five, {0, 0}, {}},
      {"the latest two stay, the newest counts", five, {2, 0}, {10, 20, 30}},
      {"the newest stays", five, {1, 0}, {10, 20, 30, 40}},
      {"not more than there are", five, {9, 0}, {}},
      {"multiples and the newest stay", five, {0, 20}, {10, 30}},
      {"a step that either rule keeps", five, {2, 20}, {10, 30}},
      {"the newest is of the last save, not the highest step",
       {complete(40, save(4)), complete(20, save(5)), complete(30, save(3))},
       {2, 0},
       {30}},
      {"and of the newest generation, whatever its count of saves",
       {complete(40, save(9, 1)), complete(20, save(1, 3)), complete(30, save(5, 2))},
       {2, 0},
       {40}},
      {"the one that a person should look at stays",
       {{15, step_state::damaged, save(1)}, complete(20, save(2))},
       {1, 0},
       {}},
      {"one that was given up elsewhere counts for none, and goes with those of its age",
       {complete(10, save(1)), complete(20, save(2)), complete_here(30, save(3)),
        complete(40, save(4))},
       {2, 0},
       {10}},
      {"also by the rule that keeps one",
       {complete(10, save(1)), complete_here(20, save(2)), complete(30, save(3))},
       {1, 0},
       {10, 20}},
      {"nothing is there", {}, {1, 1}, {}},
  };
  for (const auto& r : rows) {
    save_id newest;
    for (const auto& one : r.steps)
      newest = std::max(newest, one.id);
    CHECK_MESSAGE(removable(r.steps, r.keep,
                            {newest, save(newest.number + 1, newest.made_by.value)}) == r.going,
                  r.what);
  }
}

TEST_CASE("what was begun and not completed goes once its save has ended, and not before") {
  struct row {
    const char* what;
    std::vector<step_seen> steps;
    retention_point now;
    numbers going;
  };
  const row rows[] = {
      {"its save has ended",
       {incomplete(10, save(1)), complete(20, save(2))},
       {save(2), save(2)},
       {10}},
      {"its save is open, and may complete it yet",
       {incomplete(10, save(1)), complete(20, save(2))},
       {save(2), save(1)},
       {}},
      {"of two only the one that has ended",
       {incomplete(10, save(1)), incomplete(12, save(2)), complete(20, save(3))},
       {save(3), save(2)},
       {10}},
      {"a later save has begun it",
       {complete(20, save(2)), incomplete(30, save(3))},
       {save(2), save(2)},
       {}},
      {"a later save has ended without it",
       {complete(20, save(2)), incomplete(30, save(3))},
       {save(2), save(4)},
       {30}},
      {"no step has become complete: what is complete stays, by any rule",
       {complete(10, save(1)), complete(20, save(2)), incomplete(30, save(3))},
       {std::nullopt, save(4)},
       {30}},
      {"saves of an older generation have ended, whatever their number",
       {incomplete(10, save(9, 1)), complete(20, save(1, 2))},
       {save(1, 2), save(0, 2)},
       {10}},
      {"one of a newer generation is open: this committer is the older side of a cut",
       {incomplete(10, save(1, 3)), complete(20, save(1, 2))},
       {save(1, 2), save(99, 2)},
       {}},
      {"begun before saves were numbered",
       {incomplete(10, save_id{}), complete(20, save(1, 2))},
       {save(1, 2), save(1, 2)},
       {10}},
      {"nothing is complete here; what a person should see stays",
       {incomplete(10, save(1)), {30, step_state::damaged, save(2)}},
       {std::nullopt, save(3)},
       {10}},
  };
  for (const auto& r : rows)
    for (const retention keep : {retention{0, 0}, retention{1, 0}})
      CHECK_MESSAGE(removable(r.steps, keep, r.now) == r.going, r.what);
}

TEST_CASE("steps that are newer than the one that all nodes have stay, and count for no rule") {
  const std::vector<step_seen> steps = {complete(10, save(1)), complete(20, save(2)),
                                        complete(30, save(3))};
  CHECK(removable(steps, {1, 0}, {save(3), save(3)}) == numbers{10, 20});
  CHECK(removable(steps, {1, 0}, {save(2), save(2)}) == numbers{10});
  CHECK(removable(steps, {2, 0}, {save(2), save(2)}) == numbers{});
  // Told late: 20 may be the newest that all nodes have.
  CHECK(removable(steps, {1, 0}, {save(1), save(1)}) == numbers{});
}

TEST_CASE("a step that this node has completed and another has not keeps none from being kept") {
  two_ranks j;
  j.keep = {2, 0};
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 10));
  REQUIRE(j.save(catalog, 20));
  REQUIRE(j.complete(catalog, 30)); // and then it was given up
  CHECK(j.files().find(".troupe/confirmed/1-1 .troupe/confirmed/1-2 ") == 0);
  SUBCASE("to this process") {
    CHECK(j.save(catalog, 40)->removed == numbers{10});
  }
  SUBCASE("and to its successor") {
    auto later = j.opened();
    CHECK(j.save(later, 40)->removed == numbers{10});
    CHECK(j.save(later, 50)->removed == numbers{20, 30});
    CHECK(j.files().find(".troupe/confirmed/1-4 .troupe/confirmed/1-5 ") == 0);
  }
  SUBCASE("if what is confirmed cannot be read nothing goes") {
    j.fail("list", ".troupe/confirmed", "the disk is slow today");
    const auto done = j.save(catalog, 40);
    REQUIRE(done);
    CHECK(done->removed.empty());
    REQUIRE(done->not_removed);
    CHECK(done->not_removed->what == "the disk is slow today");
  }
}

TEST_CASE("retention removes what goes, also what an earlier process has left") {
  two_ranks j;
  j.keep = {2, 30};
  {
    auto catalog = j.opened();
    for (const std::uint64_t step : {10, 20, 30, 40})
      REQUIRE(j.save(catalog, step));
    REQUIRE(j.begin(catalog, 45));
    j.put(45); // and then its process ends
  }
  CHECK(j.files().find("10/") == std::string::npos);
  auto catalog = j.opened();
  const auto done = j.save(catalog, 50);
  REQUIRE(done);
  CHECK(done->removed == numbers{45});
  CHECK(j.save(catalog, 60)->removed == numbers{40});
  CHECK(catalog.steps().size() == 3);
  CHECK(j.files() == ".troupe/confirmed/1-3 .troupe/confirmed/1-6 .troupe/confirmed/1-7 "
                     ".troupe/steps/30 .troupe/steps/50 .troupe/steps/60 "
                     "30/rank_0.pt 30/rank_1.pt 30/troupe-manifest.json "
                     "50/rank_0.pt 50/rank_1.pt 50/troupe-manifest.json "
                     "60/rank_0.pt 60/rank_1.pt 60/troupe-manifest.json dlrover_latest.txt ");
  SUBCASE("and says so when it cannot, while the step is complete") {
    j.fail("remove", "50", "the disk is slow today");
    const auto saved = j.save(catalog, 70);
    REQUIRE(saved);
    REQUIRE(saved->not_removed);
    CHECK(saved->not_removed->what == "the disk is slow today");
    CHECK(newest_of(catalog) == 70);
    j.place.fault = nullptr;
    CHECK(j.save(catalog, 80)->removed == numbers{50});
  }
}

TEST_CASE("a step that is being written stays until its save has ended") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.begin(catalog, 10));
  const auto slow = j.put(10);
  REQUIRE(j.complete(catalog, 20));
  CHECK(catalog.retain({1, 0}, {j.last, slow.id()}).removed.empty());
  SUBCASE("and is completed late, without being the newest") {
    REQUIRE(j.commit(catalog, slow));
    CHECK(newest_of(catalog) == 20);
    CHECK(j.opened().steps().at(10).is_complete());
  }
  SUBCASE("and goes then; a commit that comes after that completes nothing") {
    CHECK(catalog.retain({1, 0}, {j.last, j.last}).removed == numbers{10});
    CHECK(error_of(j.commit(catalog, slow)).what == "step 10 has ended and was removed");
    CHECK(j.files().find("10/") == std::string::npos);
  }
}

TEST_CASE("retention looks again: what another catalog has changed meanwhile stays") {
  two_ranks j;
  auto here = j.opened();
  REQUIRE(j.complete(here, 10));
  REQUIRE(j.begin(here, 20));
  const auto m = j.put(20);
  REQUIRE(j.complete(here, 30)); // `here` has seen step 20 incomplete
  auto there = j.opened();
  REQUIRE(there.point(j.whose));
  const retention_point now{j.last, j.last};
  const auto whole = [&](std::uint64_t step, const std::string& salt = "") {
    const auto again = j.opened();
    REQUIRE(again.find(step) != nullptr);
    CHECK(again.find(step)->is_complete());
    CHECK(j.place.files[std::to_string(step) + "/rank_0.pt"] == two_ranks::content(step, 0, salt));
  };
  SUBCASE("it was completed") {
    REQUIRE(j.commit(there, m));
    CHECK(here.retain({0, 10}, now).removed.empty());
    whole(20);
  }
  SUBCASE("it was completed right before the look") {
    j.before("get", ".troupe/steps/20", [&] { REQUIRE(j.commit(there, m)); });
    CHECK(here.retain({0, 10}, now).removed.empty());
    whole(20);
  }
  SUBCASE("a complete one was begun again") {
    j.before("get", ".troupe/steps/10", [&] { REQUIRE(j.complete(there, 10, " again")); });
    CHECK(here.retain({1, 0}, now).removed == numbers{20});
    whole(10, " again");
  }
  SUBCASE("a complete one was begun again and given up: it goes all the same") {
    REQUIRE(j.begin(there, 10));
    const save_id after{j.last.made_by, j.last.number + 1};
    CHECK(here.retain({1, 0}, {now.committed, after}).removed == numbers{20, 10});
  }
  SUBCASE("it was removed already: no error") {
    CHECK(there.retain({1, 0}, now).removed == numbers{10, 20});
    const auto done = here.retain({1, 0}, now);
    CHECK(done.removed.empty());
    CHECK_FALSE(done.not_removed);
    CHECK(here.steps().size() == 1);
  }
}
