#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/catalog/step_names.hpp"
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

/// A job of two ranks whose steps lie in the place itself.
struct job {
  memory_place place;
  memory_storage storage{place};
  retention keep;
  save_id last{generation{1}, 0};

  step_catalog opened(node_name only_of = {}) {
    auto catalog = step_catalog::open(storage, std::move(only_of));
    REQUIRE_MESSAGE(catalog, catalog.error().what);
    return std::move(*catalog);
  }
  static std::string name(std::uint64_t step, global_rank rank) {
    return "step-" + std::to_string(step) + "." + std::to_string(rank) + ".pt";
  }
  /// A shard, and what the manifest says of it.
  result<shard> put(step_catalog& catalog, std::uint64_t step, const std::string& file,
                    const std::string& content) {
    if (auto claimed = catalog.claim(step, file); !claimed)
      return tl::make_unexpected(claimed.error());
    const auto put =
        storage.put(file_in(std::string(in_place), file), ports::bytes_of(content), never_stops);
    REQUIRE(put);
    return shard{file, *put, "node-" + std::string(1, content.back())};
  }
  /// By the next save.
  result<void> begin(step_catalog& catalog, std::uint64_t step) {
    ++last.number;
    return catalog.begin(step, std::string(in_place), last);
  }
  result<manifest> put_all(step_catalog& catalog, std::uint64_t step) {
    manifest m;
    m.step = step;
    m.made_by = last.made_by;
    m.save = last.number;
    m.world_size = 2;
    for (global_rank rank = 0; rank < 2; ++rank) {
      const auto content = "state " + std::to_string(step) + " of rank " + std::to_string(rank);
      auto one = put(catalog, step, name(step, rank), content);
      if (!one)
        return tl::make_unexpected(one.error());
      m.shards.push_back(std::move(*one));
    }
    return m;
  }
  /// With retention; all saves before this one have ended.
  result<retained> save(step_catalog& catalog, std::uint64_t step) {
    return begin(catalog, step)
        .and_then([&] { return put_all(catalog, step); })
        .and_then([&](const manifest& m) { return catalog.commit(m, framework::ddp); })
        .map([&] {
          return catalog.retain(keep, {last, last});
        });
  }
  std::string files() {
    std::string all;
    const auto listed = storage.list("");
    for (const auto& file : *listed)
      all += file.name + " ";
    return all;
  }
};

} // namespace

TEST_CASE("in place: what a step consists of, and that a later process finds it") {
  job j;
  auto catalog = j.opened();
  REQUIRE(j.begin(catalog, 7));
  CHECK(j.opened().steps().at(7).why == "it has no manifest");
  REQUIRE(j.save(catalog, 7));
  CHECK(j.files() == ".troupe/in_place/7/step-7.0.pt "
                     ".troupe/in_place/7/step-7.1.pt .troupe/steps/7 dlrover_latest.txt "
                     "step-7.0.pt step-7.1.pt troupe-manifest-7.json ");
  CHECK(j.place.files[".troupe/steps/7"].rfind(".\n1 2 ", 0) == 0);
  const auto again = j.opened();
  REQUIRE(again.newest() != nullptr);
  std::string into(100, ' ');
  const ports::bytes_room room{reinterpret_cast<std::byte*>(into.data()), into.size()};
  const auto& second = again.newest()->says.shards.at(1);
  REQUIRE(load_shard(j.storage, *again.newest(), second, room, never_stops));
  CHECK(into.substr(0, second.file.bytes) == "state 7 of rank 1");
  SUBCASE("a shard that is missing is noticed, where it is expected") {
    j.place.files.erase("step-7.1.pt");
    CHECK(j.opened().steps().at(7).why == "'step-7.1.pt' is missing");
    CHECK(j.opened("node-0").newest() != nullptr);
  }
  SUBCASE("and one of another size") {
    j.place.files["step-7.0.pt"] = "!";
    CHECK(j.opened().steps().at(7).why == "'step-7.0.pt' has 1 bytes, its manifest says 17");
  }
}

TEST_CASE("in place: retention takes a step's files, and no others") {
  job j;
  j.keep = {1, 0};
  const std::vector<std::string> theirs = {"step-1.9.pt", "base.pt", "logs/step-1.0.pt",
                                           ".troupe/in_place/1/sub/base.pt"};
  for (const auto& name : theirs)
    REQUIRE(j.storage.replace(name, "theirs"));
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 1));
  REQUIRE(j.begin(catalog, 2));
  REQUIRE(j.put(catalog, 2, job::name(2, 1), "state 2 of rank 1")); // and then its process ends
  auto successor = j.opened();
  REQUIRE(successor.begin(4, "4", {j.last.made_by, ++j.last.number}));
  j.place.files["4/a"] = "";
  CHECK(j.save(successor, 5)->removed == std::vector<std::uint64_t>{1, 2, 4});
  CHECK(j.files() == ".troupe/confirmed/1-4 "
                     ".troupe/in_place/5/step-5.0.pt .troupe/in_place/5/step-5.1.pt "
                     ".troupe/steps/5 base.pt dlrover_latest.txt logs/step-1.0.pt "
                     "step-1.9.pt step-5.0.pt step-5.1.pt troupe-manifest-5.json ");
}

TEST_CASE("in place: a removal that ended on the way is done again, with what it had left") {
  job j;
  j.keep = {1, 0};
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 1));
  std::uint64_t step = 1;
  for (const char* at : {"step-1.1.pt", ".troupe/in_place/1", ".troupe/steps/1"}) {
    j.place.fault = [at](const char* what, const std::string& name) -> std::optional<error> {
      if (std::string(what) == "remove" && name == at)
        return error{errc::unavailable, "the disk is slow today"};
      return std::nullopt;
    };
    auto other = j.opened();
    REQUIRE(j.save(other, ++step)->not_removed);
    CHECK(j.place.files.count(".troupe/steps/1") == 1);
  }
  j.place.fault = nullptr;
  auto last = j.opened();
  REQUIRE(j.save(last, 100));
  CHECK(j.files().find("step-1.") == std::string::npos);
  CHECK(j.place.files.count(".troupe/steps/1") == 0);
}

TEST_CASE("in place: a file that is another step's or no step's is not replaced") {
  job j;
  auto catalog = j.opened();
  const auto refused = [&](std::uint64_t step, const char* file) {
    REQUIRE(j.begin(catalog, step));
    const auto shard = j.put(catalog, step, file, "other bytes");
    REQUIRE_FALSE(shard);
    return shard.error().what;
  };
  REQUIRE(j.save(catalog, 1));
  CHECK(refused(2, "step-1.0.pt") == "step 2 cannot be in 'step-1.0.pt': step 1 is in the file "
                                     "'step-1.0.pt'; name files by their step");
  CHECK(j.place.files["step-1.0.pt"] == "state 1 of rank 0");
  REQUIRE(j.storage.replace("base.pt", "theirs"));
  const std::string stays = "it is there already, and no step known here has named it; it stays";
  CHECK(refused(2, "base.pt") == "step 2 cannot be in 'base.pt': " + stays);
  REQUIRE(j.storage.replace("logs/1", "theirs"));
  CHECK(refused(2, "logs") == "step 2 cannot be in 'logs': " + stays);
  // What was refused is not removed with the step either.
  REQUIRE(j.save(catalog, 3)->removed.size() == 1);
  CHECK(j.place.files["base.pt"] == "theirs");
  CHECK(j.place.files["step-1.0.pt"] == "state 1 of rank 0");
  // Claims of other nodes count too, of steps that this one knows; and a file is free once its step
  // has gone.
  auto other = j.opened();
  REQUIRE(j.begin(other, 4));
  REQUIRE(catalog.look_again(4));
  REQUIRE(other.claim(4, "a.pt"));
  CHECK(refused(5, "a.pt").find("step 4 is in the file 'a.pt'") != std::string::npos);
  REQUIRE(j.storage.remove(".troupe/in_place/4"));
  CHECK(catalog.claim(5, "a.pt"));
}

TEST_CASE("in place: directories and files do not get into each other") {
  job j;
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 1));
  REQUIRE(catalog.begin(2, "step-2", j.last));
  REQUIRE(j.begin(catalog, 3));
  CHECK(catalog.claim(3, "step-2").error().what ==
        "step 3 cannot be in 'step-2': step 2 is in 'step-2'");
  CHECK(catalog.begin(4, "step-1.0.pt/x", j.last).error().what ==
        "step 4 cannot be in 'step-1.0.pt/x': step 1 is in the file 'step-1.0.pt'; name files by "
        "their step");
  CHECK(catalog.begin(3, "3", j.last).error().what == "step 3 is in '.' already, not in '3'");
  for (const char* wrong : {".troupe", "troupe-manifest.json", "latest", "dlrover_latest.txt",
                            "latest_checkpointed_iteration.txt"})
    CHECK(catalog.claim(3, wrong).error().what ==
          "'" + std::string(wrong) + "' cannot be the name of a step's file");
  CHECK(catalog.claim(3, "a/b").error().what ==
        "'a/b' does not lie directly in the place of its step");
  CHECK(catalog.claim(3, "..").error().code == errc::invalid);
  CHECK(catalog.claim(9, "a").error().what == "step 9 has ended and was removed");
  CHECK(catalog.claim(2, "latest")); // in a directory of its own
  CHECK(j.place.files.count(".troupe/in_place/2/latest") == 0);
}

TEST_CASE("in place: a job that went back writes a step's files anew") {
  job j;
  auto catalog = j.opened();
  REQUIRE(j.save(catalog, 10));
  REQUIRE(j.save(catalog, 20));
  CHECK_FALSE(j.save(catalog, 20)); // the newest stays
  REQUIRE(j.begin(catalog, 10));
  CHECK(j.opened().steps().at(10).state == step_state::incomplete);
  REQUIRE(j.save(catalog, 10));
  auto again = j.opened();
  REQUIRE(again.newest() != nullptr);
  CHECK(again.newest()->step == 10);
  CHECK(again.newest()->says.id() == save_id{generation{1}, 5});
}
