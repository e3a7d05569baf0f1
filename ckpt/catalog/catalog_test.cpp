#include "ckpt/catalog/ddp_layout.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/ports/testing/memory_storage.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using ports::never_stops;
using ports::testing::memory_place;
using ports::testing::memory_storage;

namespace {

using numbers = std::vector<std::uint64_t>;

step_seen complete(std::uint64_t step, std::uint64_t sequence) {
  return {step, step_state::complete, sequence};
}

/// A job of two ranks on one place.
struct job {
  memory_place place;
  memory_storage storage{place};
  retention keep;
  framework whose = framework::ddp;

  static std::string content(std::uint64_t step, global_rank rank, const std::string& salt) {
    return "rank " + std::to_string(rank) + " at step " + std::to_string(step) + salt;
  }
  step_catalog opened(node_name only_of = {}) {
    auto catalog = step_catalog::open(storage, std::move(only_of));
    REQUIRE_MESSAGE(catalog, catalog.error().what);
    return std::move(*catalog);
  }
  manifest put(std::uint64_t step, const std::string& salt = "") {
    manifest m;
    m.step = step;
    m.world_size = 2;
    m.layout = ddp_layout::name;
    for (global_rank rank = 0; rank < 2; ++rank) {
      const auto name = ddp_layout::shard(rank);
      const auto text = content(step, rank, salt);
      const auto put =
          storage.put(ddp_layout::directory(step) + "/" + name, ports::bytes_of(text), never_stops);
      REQUIRE(put);
      m.shards.push_back({name, *put, rank == 0 ? "node-a" : "node-b"});
    }
    return m;
  }
  result<committed> save(step_catalog& catalog, std::uint64_t step, const std::string& salt = "") {
    if (auto begun = catalog.begin(step, ddp_layout::directory(step)); !begun)
      return tl::make_unexpected(begun.error());
    return commit(catalog, put(step, salt));
  }
  result<committed> commit(step_catalog& catalog, const manifest& m) const {
    return catalog.commit(m, trackers_of(whose, m.step, ddp_layout::directory(m.step)), keep);
  }
  std::string files() {
    std::string all;
    const auto listed = storage.list("");
    for (const auto& file : *listed)
      all += file.name + " ";
    return all;
  }
};

std::uint64_t newest_of(const step_catalog& catalog) {
  return catalog.newest() == nullptr ? 0 : catalog.newest()->step;
}

} // namespace

TEST_CASE("which steps go") {
  const std::vector<step_seen> five = {complete(10, 1), complete(20, 2), complete(30, 3),
                                       complete(40, 4), complete(50, 5)};
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
      {"whom either rule keeps", five, {2, 20}, {10, 30}},
      {"the newest is the one completed last, not the highest step",
       {complete(40, 4), complete(20, 5), complete(30, 3)},
       {2, 0},
       {30}},
      {"nothing is complete: nothing goes",
       {{10, step_state::incomplete}, {20, step_state::writing}, {30, step_state::damaged}},
       {1, 0},
       {}},
      {"what was begun and left, before the newest",
       {{10, step_state::incomplete}, complete(20, 1), {30, step_state::incomplete}},
       {0, 0},
       {10}},
      {"what is being written stays, and what a person should look at",
       {{10, step_state::writing}, {15, step_state::damaged}, complete(20, 1)},
       {1, 0},
       {}},
      {"nothing is there", {}, {1, 1}, {}},
  };
  for (const auto& r : rows)
    CHECK_MESSAGE(removable(r.steps, r.keep) == r.going, r.what);
}

TEST_CASE("a step is complete when it is committed, and its files are as users know them") {
  job j;
  auto catalog = j.opened();
  CHECK(catalog.newest() == nullptr);
  REQUIRE(catalog.begin(100, "100"));
  const auto m = j.put(100);
  CHECK(newest_of(catalog) == 0);
  CHECK(newest_of(j.opened()) == 0);
  CHECK(j.opened().steps().at(100).why == "it has no manifest");
  const auto done = j.commit(catalog, m);
  REQUIRE_MESSAGE(done, done.error().what);
  CHECK(done->sequence == 1);
  CHECK(newest_of(catalog) == 100);
  CHECK(j.files() == ".troupe/steps/100 100/.troupe-manifest.json 100/rank_0.pt 100/rank_1.pt "
                     "dlrover_latest.txt ");
  CHECK(j.place.files["dlrover_latest.txt"] == "100");

  const auto again = j.opened();
  REQUIRE(newest_of(again) == 100);
  const auto& found = *again.newest();
  std::string into(found.says.shards.at(1).file.bytes, ' ');
  const ports::bytes_room room{reinterpret_cast<std::byte*>(into.data()), into.size()};
  REQUIRE(load_shard(j.storage, found, found.says.shards[1], room, never_stops));
  CHECK(into == job::content(100, 1, ""));
}

TEST_CASE("what is wrong with the newest is told, and the one before it taken") {
  job j;
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 10));
  REQUIRE(j.save(catalog, 20));
  const auto why = [&j](std::uint64_t newest) {
    const auto found = j.opened();
    CHECK(newest_of(found) == newest);
    return found.steps().at(20).why;
  };
  CHECK(why(20).empty());
  SUBCASE("a shard is missing") {
    j.place.files.erase("20/rank_1.pt");
    CHECK(why(10) == "'20/rank_1.pt' is missing");
    CHECK(newest_of(j.opened("node-a")) == 20); // there only its own shards are expected
    CHECK(newest_of(j.opened("node-b")) == 10);
  }
  SUBCASE("a shard has another size") {
    j.place.files["20/rank_0.pt"] += "!";
    CHECK(why(10) == "'20/rank_0.pt' has 18 bytes, its manifest says 17");
  }
  SUBCASE("its manifest is damaged") {
    j.place.files["20/.troupe-manifest.json"][5] = '?';
    CHECK(why(10) == "'20/.troupe-manifest.json': the manifest is damaged: its checksum does not "
                     "match");
  }
  SUBCASE("its manifest is another step's") {
    j.place.files["20/.troupe-manifest.json"] = j.place.files["10/.troupe-manifest.json"];
    CHECK(why(10) == "'20/.troupe-manifest.json' is of step 10");
  }
  SUBCASE("its marker names a place that is none") {
    j.place.files[".troupe/steps/20"] = "../elsewhere";
    CHECK(why(10).find("'../elsewhere' is no name") != std::string::npos);
  }
  SUBCASE("its bytes are others: noticed when it is loaded") {
    j.place.files["20/rank_0.pt"][3] ^= 1;
    const auto found = j.opened();
    REQUIRE(newest_of(found) == 20);
    std::string into(100, ' ');
    const ports::bytes_room room{reinterpret_cast<std::byte*>(into.data()), into.size()};
    const auto& shard = found.newest()->says.shards.at(0);
    const auto loaded = load_shard(j.storage, *found.newest(), shard, room, never_stops);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().what.find("step 20: '20/rank_0.pt' is damaged: its checksum is ") == 0);
  }
  CHECK(j.opened().steps().size() == 2);
}

TEST_CASE("files of others are never looked at and never removed") {
  job j;
  j.keep = {1, 0};
  const std::vector<std::string> theirs = {"5/rank_0.pt", "15/model.bin", "notes.txt",
                                           ".troupe/steps/007", ".troupe/steps/x"};
  for (const auto& name : theirs)
    REQUIRE(j.storage.replace(name, "theirs"));
  auto catalog = j.opened();
  CHECK(catalog.steps().empty());
  REQUIRE(j.save(catalog, 10));
  REQUIRE(j.save(catalog, 20));
  for (const auto& name : theirs)
    CHECK(j.place.files[name] == "theirs");
}

TEST_CASE("retention removes what goes, also what an earlier process has left") {
  job j;
  j.keep = {2, 30};
  {
    auto catalog = j.opened();
    for (const std::uint64_t step : {10, 20, 30, 40})
      REQUIRE(j.save(catalog, step));
    REQUIRE(catalog.begin(45, "45"));
    j.put(45); // and then its process ends
  }
  CHECK(j.files().find("10/") == std::string::npos);
  auto catalog = j.opened();
  const auto done = j.save(catalog, 50);
  REQUIRE(done);
  CHECK(done->removed == numbers{45});
  REQUIRE(j.save(catalog, 60)->removed == numbers{40});
  CHECK(catalog.steps().size() == 3);
  CHECK(j.files() == ".troupe/steps/30 .troupe/steps/50 .troupe/steps/60 "
                     "30/.troupe-manifest.json 30/rank_0.pt 30/rank_1.pt "
                     "50/.troupe-manifest.json 50/rank_0.pt 50/rank_1.pt "
                     "60/.troupe-manifest.json 60/rank_0.pt 60/rank_1.pt dlrover_latest.txt ");
  SUBCASE("and says so when it cannot, while the step is complete") {
    j.place.fault = [](const char* operation, const std::string& name) -> std::optional<error> {
      if (operation == std::string("remove") && name == "50")
        return error{errc::unavailable, "the disk is slow today"};
      return std::nullopt;
    };
    const auto saved = j.save(catalog, 70);
    REQUIRE(saved);
    REQUIRE(saved->not_removed);
    CHECK(saved->not_removed->what == "the disk is slow today");
    CHECK(newest_of(catalog) == 70);
    j.place.fault = nullptr;
    CHECK(j.save(catalog, 80)->removed == numbers{50});
  }
}

TEST_CASE("after a job went back, the newest is what it saved since") {
  job j;
  j.keep = {3, 0};
  auto catalog = j.opened();
  for (const std::uint64_t step : {10, 20, 30})
    REQUIRE(j.save(catalog, step));
  REQUIRE(j.save(catalog, 15, " again"));
  CHECK(newest_of(j.opened()) == 15);
  CHECK(j.place.files["dlrover_latest.txt"] == "15");
  // Step 20 is there from before: it is not complete any more once it is begun again.
  REQUIRE(catalog.begin(20, "20"));
  CHECK(j.opened().steps().at(20).state == step_state::incomplete);
  REQUIRE(j.commit(catalog, j.put(20, " again")));
  CHECK(newest_of(j.opened()) == 20);
  CHECK(j.opened().newest()->says.sequence == 5);
}

TEST_CASE("a step that a tracker may name is not begun again before the trackers are up to date") {
  job j;
  {
    auto catalog = j.opened();
    REQUIRE(j.save(catalog, 10));
    REQUIRE(j.save(catalog, 20));
    j.place.files["dlrover_latest.txt"] = "10"; // as if its process had ended before
  }
  auto catalog = j.opened();
  const auto begun = catalog.begin(10, "10");
  REQUIRE_FALSE(begun);
  CHECK(begun.error().what.find("a tracker may name it") != std::string::npos);
  REQUIRE(catalog.point(trackers_of(j.whose, 20, "20")));
  CHECK(j.place.files["dlrover_latest.txt"] == "20");
  CHECK(catalog.begin(10, "10"));
}

TEST_CASE("the newest complete step is not written again; a commit may be repeated") {
  job j;
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 10));
  const auto begun = catalog.begin(10, "10");
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == errc::refused);
  CHECK(begun.error().what == "step 10 is complete in '10', and the newest that is; it stays");
  const auto m = j.put(10);
  const auto before = j.files();
  CHECK(j.commit(catalog, m)->sequence == 1);
  auto reopened = j.opened();
  CHECK(j.commit(reopened, m)->sequence == 1);
  CHECK(j.files() == before);
  auto other = m;
  other.shards.at(0).file.crc32 ^= 1;
  CHECK_FALSE(j.commit(reopened, other));
  // After a newer one an older commit that is repeated takes no tracker back.
  REQUIRE(j.save(catalog, 20));
  REQUIRE(j.commit(catalog, m));
  CHECK(j.place.files["dlrover_latest.txt"] == "20");
}

TEST_CASE("a step that was given up, and what may not be begun or committed") {
  job j;
  auto catalog = j.opened();
  REQUIRE(catalog.begin(10, "10"));
  j.put(10);
  REQUIRE(j.save(catalog, 20));
  CHECK(catalog.steps().count(10) == 1); // being written still
  catalog.give_up(10);
  CHECK(j.save(catalog, 30)->removed == numbers{10});

  const auto refused = [&catalog](std::uint64_t step, const char* directory) {
    const auto begun = catalog.begin(step, directory);
    REQUIRE_FALSE(begun);
    return begun.error().what;
  };
  CHECK(refused(40, "../40").find("no name") != std::string::npos);
  CHECK(refused(40, ".troupe/40") == "'.troupe/40' cannot be a step's directory");
  CHECK(refused(40, "20") == "step 40 cannot be in '20': step 20 is in '20'");
  CHECK(refused(40, "20/40") == "step 40 cannot be in '20/40': step 20 is in '20'");
  CHECK(refused(20, "other") == "step 20 is in '20' already, not in 'other'");
  CHECK(catalog.begin(200, "200")); // no part of "20"

  CHECK(j.commit(catalog, j.put(50)).error().what == "step 50 was never begun here");
  manifest empty;
  empty.step = 200;
  CHECK(j.commit(catalog, empty).error().what == "step 200 has 0 shards; 1 to 262144 are allowed");
}

TEST_CASE("a commit that storage has failed is repeated, and completes what is left") {
  job j;
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 10));
  REQUIRE(catalog.begin(20, "20"));
  const auto m = j.put(20);
  const auto fail_at = [&j](const std::string& at) {
    j.place.fault = [at](const char*, const std::string& name) -> std::optional<error> {
      if (name == at)
        return error{errc::unavailable, "full"};
      return std::nullopt;
    };
  };
  fail_at("20/.troupe-manifest.json");
  CHECK(j.commit(catalog, m).error().what == "full");
  j.place.fault = nullptr;
  CHECK(newest_of(j.opened()) == 10);
  fail_at("dlrover_latest.txt");
  CHECK(j.commit(catalog, m).error().what == "full");
  j.place.fault = nullptr;
  CHECK(newest_of(j.opened()) == 20);
  CHECK(j.place.files["dlrover_latest.txt"] == "10"); // complete too, and older
  REQUIRE(j.commit(catalog, m));
  CHECK(j.place.files["dlrover_latest.txt"] == "20");
}
