// Runs that share a place, or follow each other at it.
#include "ckpt/catalog/line.hpp"

#include "ckpt/catalog/testing/place_node.hpp"
#include "runtime/base/generations.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using ports::testing::memory_place;
using ports::testing::memory_storage;
using node = testing::place_node;
using testing::loaded_from;

namespace {

using steps = std::vector<std::uint64_t>;

generation of_term(std::uint64_t which, std::uint64_t count = 1) {
  return with_term(generation{count}, term{which});
}

/// A life of a job at a place: it opens it, goes on from the newest step or from none, and saves.
class life {
 public:
  life(memory_place& place, std::string run, generation made_by)
      : storage_(place), who_{std::move(run), made_by}, node_(place) {}

  result<generation> open() {
    auto as = saves_as(storage_, who_);
    if (as)
      as_ = *as;
    return as;
  }
  /// The step; 0 if there is none.
  std::uint64_t load() {
    const auto all = step_catalog::open(storage_);
    REQUIRE(all);
    const auto* newest = all->newest();
    from_.save = newest == nullptr ? std::nullopt : std::optional(newest->says.id());
    return newest == nullptr ? 0 : newest->step;
  }
  void has(const save_id& in_memory) { from_.save = in_memory; }
  void begins_with(std::uint64_t step) { from_.step = step; }
  void passes(generation which) { from_.passed_over.push_back(which); }
  result<void> begin() { return begin_run(storage_, who_, as_, from_); }
  result<completed> save(std::uint64_t step, retention keep = {2, 0}) {
    auto w = node::snapshot(step, 0, 1, as_, ++saves_);
    w.to.keep = keep;
    return node_.save(w, "step " + std::to_string(step) + " of " + in_full(as_));
  }
  steps others() {
    const auto all = steps_of_others(storage_, term_of(as_));
    REQUIRE(all);
    return *all;
  }
  generation as() const { return as_; }
  save_id last() const { return {as_, saves_}; }

 private:
  memory_storage storage_;
  run_at_start who_;
  node node_;
  generation as_;
  origin from_;
  std::uint64_t saves_ = 0;
};

steps complete_at(memory_place& place) {
  memory_storage storage(place);
  const auto all = step_catalog::open(storage);
  REQUIRE(all);
  steps numbers;
  for (const auto* found : all->complete_newest_first())
    numbers.push_back(found->step);
  return numbers;
}

/// One that has loaded what there was, and saves these steps.
life run_of(memory_place& place, const std::string& name, generation made_by, const steps& saved) {
  life one(place, name, made_by);
  REQUIRE(one.open());
  one.load();
  REQUIRE(one.begin());
  for (const auto step : saved)
    REQUIRE(one.save(step));
  return one;
}

} // namespace

TEST_CASE("a run that begins anew removes no step of the run before it") {
  memory_place place;
  run_of(place, "a", of_term(10), {98'000, 99'000, 100'000});
  CHECK(complete_at(place) == steps{100'000, 99'000});
  life anew(place, "b", of_term(20));
  REQUIRE(anew.open());
  REQUIRE(anew.begin());
  CHECK(anew.others() == steps{100'000, 99'000});
  for (const std::uint64_t step : {10, 20, 30})
    REQUIRE(anew.save(step));
  CHECK(complete_at(place) == steps{30, 20, 100'000, 99'000});
  SUBCASE("nor does it write over one, or complete it") {
    const auto files = place.files;
    const auto refused = anew.save(99'000);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::refused);
    CHECK(refused.error().what.find("step 99000 is in '99000' by another run (save 2 of "
                                    "generation 1 of term 10)") == 0);
    CHECK(place.files == files);
    CHECK(anew.save(99'001));
  }
  SUBCASE("the next life of it goes on from its own") {
    auto next = run_of(place, "b", of_term(20, 2), {40});
    CHECK(next.others() == steps{100'000, 99'000});
    CHECK(complete_at(place) == steps{40, 30, 100'000, 99'000});
  }
}

TEST_CASE("a run whose states are damaged gives up their numbers, and no others") {
  memory_place place;
  run_of(place, "a", of_term(10), {10});
  auto cut = run_of(place, "b", of_term(20), {20, 30});
  life beside(place, "c", of_term(25));
  REQUIRE(beside.open());
  REQUIRE(beside.begin());
  REQUIRE(beside.save(40));
  for (const auto* shard : {"20/rank_0.pt", "30/rank_0.pt"})
    place.files.at(shard) = "cut";
  life next(place, "d", of_term(30));
  REQUIRE(next.open());
  next.begins_with(10);
  SUBCASE("as long as no load has looked at them they stay") {
    REQUIRE(next.begin());
    CHECK_FALSE(next.save(20));
  }
  SUBCASE("then they are saved again") {
    next.passes(cut.as());
    REQUIRE(next.begin());
    REQUIRE(next.save(20, {10, 0}));
    CHECK_FALSE(next.save(40));
    CHECK(next.others() == steps{40, 30}); // No rule removes what was not saved again.
  }
}

TEST_CASE("what a run went on from is its own to keep by a rule, through any number of runs") {
  memory_place place;
  run_of(place, "a", of_term(10), {10, 20});
  run_of(place, "b", of_term(20), {30});
  CHECK(complete_at(place) == steps{30, 20});
  auto last = run_of(place, "c", of_term(30), {40});
  CHECK(complete_at(place) == steps{40, 30});
  REQUIRE(last.save(50, {1, 0}));
  CHECK(complete_at(place) == steps{50});
  CHECK(last.others().empty());
  SUBCASE("also where `.troupe` is gone: manifests say it") {
    memory_storage storage(place);
    REQUIRE(storage.remove(".troupe"));
    auto after = run_of(place, "d", of_term(40), {60});
    REQUIRE(after.save(70));
    REQUIRE(after.save(80));
    CHECK(complete_at(place) == steps{80, 70});
  }
}

TEST_CASE("a run that goes back leaves what came after, and may come to those numbers again") {
  memory_place place;
  life first(place, "a", of_term(10));
  REQUIRE(first.open());
  REQUIRE(first.begin());
  for (const std::uint64_t step : {10, 20, 30})
    REQUIRE(first.save(step, {}));
  life back(place, "b", of_term(20));
  REQUIRE(back.open());
  back.begins_with(10);
  REQUIRE(back.begin());
  CHECK(back.others() == steps{30, 20});
  REQUIRE(back.save(20, {1, 0}));
  CHECK(complete_at(place) == steps{20, 30});
  CHECK(loaded_from(place) == 20);
}

TEST_CASE("a later life that has its state from memory knows what the run has begun with") {
  memory_place place;
  run_of(place, "a", of_term(10), {10, 20});
  auto first = run_of(place, "b", of_term(20), {});
  life second(place, "b", of_term(20, 2));
  REQUIRE(second.open());
  second.has({first.as(), 5});
  REQUIRE(second.begin());
  CHECK(second.others().empty());
  // And one under the next master, with what was in memory.
  life third(place, "b", of_term(25, 3));
  REQUIRE(third.open());
  third.has({second.as(), 9});
  REQUIRE(third.begin());
  CHECK(third.others().empty());
  REQUIRE(third.save(30, {1, 0}));
  CHECK(complete_at(place) == steps{30});
}

TEST_CASE("a run whose clock was ahead closes the place for none that comes after it") {
  memory_place place;
  run_of(place, "ahead", of_term(1'000'000), {10, 20});
  auto now = run_of(place, "now", of_term(1'000), {30});
  CHECK(now.as() == of_term(1'000'001));
  CHECK(loaded_from(place) == 30);
  CHECK(complete_at(place) == steps{30, 20});
  // Its next life finds its term again; its count of generations goes on.
  auto next = run_of(place, "now", of_term(1'000, 2), {40});
  CHECK(next.as() == of_term(1'000'001, 2));
  auto after = run_of(place, "after", of_term(2'000), {50});
  CHECK(after.as() == of_term(1'000'002));
  // A process without a launcher, too.
  auto alone = run_of(place, "", of_term(3'000), {60});
  CHECK(alone.as() == of_term(1'000'003));
  CHECK(loaded_from(place) == 60);
  CHECK(complete_at(place) == steps{60, 50});
  SUBCASE("what is known of it is the manifests' alone") {
    memory_storage storage(place);
    REQUIRE(storage.remove(".troupe"));
    CHECK(run_of(place, "last", of_term(4'000), {70}).as() == of_term(1'000'004));
    CHECK(loaded_from(place) == 70);
  }
}

TEST_CASE("a life that must not save hears it when it opens the place, with what to do") {
  memory_place place;
  run_of(place, "a", of_term(10), {10});
  SUBCASE("the isolated side of a cut: a later master of the run saves") {
    run_of(place, "a", of_term(20, 2), {20});
    life isolated(place, "a", of_term(10, 2));
    const auto refused = isolated.open();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::refused);
    CHECK(refused.error().what ==
          "generation 2 of term 10 of run 'a' saves nothing here: a later master of that run has "
          "begun to (term 20). If that was another run, whose machine had a clock that was ahead, "
          "and it has ended, remove '.troupe/runs/20'");
    // The remedy is one.
    REQUIRE(memory_storage(place).remove(".troupe/runs/20"));
    REQUIRE(isolated.open());
    CHECK(isolated.as() == of_term(21, 2));
    isolated.load();
    REQUIRE(isolated.begin());
    REQUIRE(isolated.save(30));
    CHECK(complete_at(place) == steps{30, 20});
  }
  SUBCASE("another run has begun there meanwhile") {
    run_of(place, "b", of_term(20), {20});
    life overtaken(place, "a", of_term(10, 2));
    const auto refused = overtaken.open();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("run 'b' has begun to save here after run 'a'") == 0);
    CHECK(refused.error().what.find("remove '.troupe/runs/20'") != std::string::npos);
    // Not a new run, nor a process that has no name.
    CHECK(life(place, "c", of_term(5)).open().value() == of_term(21));
    CHECK(life(place, "", of_term(5)).open().value() == of_term(21));
  }
  SUBCASE("two begin at once with one term: the second one is refused") {
    life one(place, "x", of_term(5)), other(place, "y", of_term(6));
    CHECK(one.open().value() == other.open().value());
    REQUIRE(one.begin());
    CHECK_FALSE(other.begin());
    CHECK(other.open().value() == of_term(12));
    CHECK(other.begin());
  }
}

TEST_CASE("a record that is damaged is no record, and costs no step") {
  memory_place place;
  run_of(place, "a", of_term(10), {10, 20});
  run_of(place, "b", of_term(20), {30});
  auto& record = place.files.at(".troupe/runs/20");
  record.back() = 'x';
  place.files[".troupe/runs/007"] = place.files[".troupe/runs/x"] = "theirs";
  auto next = run_of(place, "b", of_term(20, 2), {40});
  CHECK(complete_at(place) == steps{40, 30});
  CHECK(place.files.at(".troupe/runs/007") == "theirs");
}

TEST_CASE("a line has room for so many runs, and forgets the oldest") {
  std::vector<save_id> all;
  for (std::uint64_t run = 1; run <= 100; ++run)
    go_on_from(all, {of_term(run), run}, {});
  CHECK(all.size() == 64);
  CHECK(all.front() == save_id{of_term(100), 100});
  const line of{term{101}, all};
  CHECK(of.holds({of_term(50), 50}));
  CHECK_FALSE(of.holds({of_term(50), 51}));
  CHECK(of.touches(of_term(50, 7)));
  CHECK_FALSE(of.touches(of_term(20)));
  CHECK(of.holds({of_term(101, 9), 1'000}));
}
