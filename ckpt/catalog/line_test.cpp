// Runs that share a place, or follow each other at it.
#include "ckpt/catalog/line.hpp"

#include "ckpt/catalog/testing/place_node.hpp"
#include "ckpt/limits.hpp"
#include "runtime/base/generations.hpp"

#include <doctest/doctest.h>
#include <libdeflate.h>

#include <optional>
#include <string>
#include <utility>
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
  void finds_lacking(const save_id& which) { from_.lacking.push_back(which); }
  void finds_damaged(const save_id& which) { from_.damaged.push_back(which); }
  result<void> begin() { return begin_run(storage_, who_, as_, from_); }
  result<completed> save(std::uint64_t step, retention keep = {2, 0}) {
    auto w = node::snapshot(step, 0, 1, as_, ++saves_);
    w.to.keep = keep;
    if (from_.step)
      w.to.resumed_from = {*from_.step, 0};
    return node_.save(w, "step " + std::to_string(step) + " of " + in_full(as_));
  }
  /// A step whose save goes no further than its shard, unless it is completed later.
  struct half_saved {
    node* of;
    commit_order order;
    bool complete() { return of->commit(order).has_value(); }
  };
  half_saved put(std::uint64_t step) {
    const auto w = node::snapshot(step, 0, 1, as_, ++saves_);
    const auto written = node_.put(w, "step " + std::to_string(step) + " of " + in_full(as_));
    REQUIRE(written);
    return {&node_, node::order(w, {*written})};
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

/// A manifest's text as far as its checksum is right.
std::string with_sum(const std::string& body) {
  return body + "\"crc32\":" + std::to_string(libdeflate_crc32(0, body.data(), body.size())) +
         "}\n";
}

steps complete_at(memory_place& place) {
  memory_storage storage(place);
  const auto all = step_catalog::open(storage);
  REQUIRE(all);
  steps numbers;
  for (const auto* found : all->complete_newest_first())
    numbers.push_back(found->step);
  return numbers;
}

/// One that goes on from a step, and has not saved yet.
life begun_from(memory_place& place, const std::string& name, generation made_by,
                std::uint64_t step) {
  life one(place, name, made_by);
  REQUIRE(one.open());
  one.begins_with(step);
  REQUIRE(one.begin());
  return one;
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

TEST_CASE("a damaged step of another run is saved again, and no other one of that run") {
  memory_place place;
  run_of(place, "a", of_term(10), {10});
  auto other = run_of(place, "b", of_term(20), {20});
  const auto damaged = other.last();
  REQUIRE(other.save(30, {10, 0}));
  const auto whole_20 = place.files.at("20/rank_0.pt");
  for (const auto* shard : {"20/rank_0.pt", "30/rank_0.pt"})
    place.files.at(shard) = "cut";
  life next(place, "c", of_term(30));
  REQUIRE(next.open());
  next.begins_with(10);
  SUBCASE("as long as no load has found it to be so it stays") {
    REQUIRE(next.begin());
    CHECK_FALSE(next.save(20));
    CHECK_FALSE(next.save(30));
    CHECK(next.others() == steps{30, 20});
  }
  SUBCASE("then it gives way") {
    next.finds_damaged(damaged);
    REQUIRE(next.begin());
    CHECK(next.others() == steps{30});
    const auto again = next.save(20, {10, 0});
    REQUIRE_MESSAGE(again, again.error().what);
    CHECK_FALSE(next.save(30));
    SUBCASE("and the next life of the run is told of the other") {
      life later(place, "c", of_term(30, 2));
      REQUIRE(later.open());
      later.begins_with(20);
      later.finds_damaged(other.last());
      REQUIRE(later.begin());
      CHECK(later.save(30, {10, 0}));
    }
  }
  SUBCASE("one that lacks bytes gives way as long as it does") {
    next.finds_lacking(damaged);
    REQUIRE(next.begin());
    SUBCASE("") {
      CHECK(next.save(20, {10, 0}));
    }
    SUBCASE("a file is gone") {
      place.files.erase("20/rank_0.pt");
      CHECK(next.save(20, {10, 0}));
    }
    SUBCASE("a person has brought it back") {
      place.files.at("20/rank_0.pt") = whole_20;
      CHECK_FALSE(next.save(20, {10, 0}));
      CHECK(place.files.at("20/rank_0.pt") == whole_20);
    }
    SUBCASE("also to a run that goes on from this one, and has not seen it") {
      REQUIRE(next.save(15, {10, 0}));
      auto last = begun_from(place, "d", of_term(40), 15);
      CHECK(last.save(20, {10, 0}));
    }
  }
  SUBCASE("no rule removes it") {
    next.finds_damaged(damaged);
    REQUIRE(next.begin());
    REQUIRE(next.save(40, {1, 0}));
    CHECK(place.files.count("20/rank_0.pt") == 1);
  }
}

TEST_CASE("a step that another run has left in a save gives way as long as it is not complete") {
  memory_place place;
  run_of(place, "a", of_term(10), {10});
  life cut(place, "b", of_term(20));
  REQUIRE(cut.open());
  REQUIRE(cut.begin());
  auto late = cut.put(20);
  SUBCASE("to a run that goes on from another") {
    auto next = run_of(place, "c", of_term(30), {15});
    CHECK(place.files.count("20/rank_0.pt") == 1); // No rule removes it.
    REQUIRE(next.save(20, {10, 0}));
    CHECK(complete_at(place) == steps{20, 15, 10});
    CHECK_FALSE(late.complete());
  }
  SUBCASE("to one that begins anew") {
    life next(place, "c", of_term(30));
    REQUIRE(next.open());
    REQUIRE(next.begin());
    CHECK(next.save(20));
  }
  SUBCASE("its saver has completed it meanwhile") {
    auto next = begun_from(place, "c", of_term(30), 10);
    REQUIRE(late.complete());
    CHECK_FALSE(next.save(20));
  }
  SUBCASE("it was begun after this run had") {
    auto next = begun_from(place, "c", of_term(30), 10);
    (void)cut.put(25);
    CHECK_FALSE(next.save(25));
  }
  SUBCASE("its manifest is of another version, or cannot be read") {
    REQUIRE(late.complete());
    auto& text = place.files.at("20/troupe-manifest.json");
    std::optional<error> why;
    SUBCASE("of another version") {
      text = with_sum("{\"troupe_checkpoint\":7,\"step\":20,");
    }
    SUBCASE("of a later version, which ends otherwise") {
      text = "{\"troupe_checkpoint\":7,\"step\":20,\"blake3\":\"00\"}";
    }
    SUBCASE("of another user") {
      why = error{errc::refused, "permission denied"};
    }
    place.fault = [&why](const char*, const std::string& name) {
      return name == "20/troupe-manifest.json" ? why : std::nullopt;
    };
    auto next = begun_from(place, "c", of_term(30), 10);
    CHECK_FALSE(next.save(20));
    why.reset();
    CHECK_FALSE(next.save(20));
  }
  SUBCASE("its manifest has the name of an older version") {
    place.files["20/.troupe-manifest.json"] = "{}";
    life next(place, "c", of_term(30));
    REQUIRE(next.open());
    REQUIRE(next.begin());
    CHECK_FALSE(next.save(20));
  }
  SUBCASE("its saver completes it at the moment that its number is begun again") {
    auto next = begun_from(place, "c", of_term(30), 10);
    bool once = false;
    place.fault = [&](const char* what, const std::string& name) -> std::optional<error> {
      if (std::string(what) == "put" && name == ".troupe/steps/20" && !std::exchange(once, true))
        REQUIRE(late.complete());
      return std::nullopt;
    };
    const auto before = place.files.at("20/rank_0.pt");
    CHECK_FALSE(next.save(20, {10, 0}));
    REQUIRE(once);
    CHECK(place.files.at("20/rank_0.pt") == before);
    CHECK(complete_at(place) == steps{20, 10});
  }
  SUBCASE("its manifest is cut short") {
    REQUIRE(late.complete());
    place.files.at("20/troupe-manifest.json").resize(40);
    auto next = begun_from(place, "c", of_term(30), 10);
    CHECK(next.save(20));
  }
}

TEST_CASE("more damaged steps than a record holds leave its line as it is") {
  memory_place place;
  run_of(place, "a", of_term(10), {10});
  life next(place, "c", of_term(1'000));
  REQUIRE(next.open());
  next.begins_with(10);
  for (std::uint64_t n = 0; n < 2 * limits::given_up_max; ++n)
    next.finds_damaged({of_term(20 + n), 1});
  REQUIRE(next.begin());
  CHECK(next.others().empty());
  memory_storage storage(place);
  const auto of = line_of(storage, term_of(next.as()));
  REQUIRE(of);
  CHECK(of->damaged.size() == limits::given_up_max);
  CHECK(of->damaged.front().made_by == of_term(19 + 2 * limits::given_up_max));
  CHECK(of->from.size() == 1);
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
