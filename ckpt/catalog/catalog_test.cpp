#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;
using ports::never_stops;

TEST_CASE("a step is complete when it is committed, and its files are as users know them") {
  two_ranks j;
  auto catalog = j.opened();
  CHECK(catalog.newest() == nullptr);
  REQUIRE(j.begin(catalog, 100));
  const auto m = j.put(100);
  CHECK(newest_of(catalog) == 0);
  CHECK(newest_of(j.opened()) == 0);
  CHECK(j.opened().steps().at(100).why == "it has no manifest");
  const auto done = j.commit(catalog, m);
  REQUIRE_MESSAGE(done, done.error().what);
  CHECK(catalog.newest()->says.id() == save_id{generation{1}, 1});
  CHECK(newest_of(catalog) == 100);
  CHECK(j.files() == ".troupe/steps/100 100/rank_0.pt 100/rank_1.pt 100/troupe-manifest.json "
                     "dlrover_latest.txt ");
  CHECK(j.place.files["dlrover_latest.txt"] == "100");
  CHECK(j.place.files[".troupe/steps/100"].rfind("100\n1 1 ", 0) == 0);

  const auto again = j.opened();
  REQUIRE(newest_of(again) == 100);
  const auto& found = *again.newest();
  std::string into(found.says.shards.at(1).file.bytes, ' ');
  const ports::bytes_room room{reinterpret_cast<std::byte*>(into.data()), into.size()};
  REQUIRE(load_shard(j.storage, found, found.says.shards[1], room, never_stops));
  CHECK(into == two_ranks::content(100, 1, ""));
}

TEST_CASE("what is wrong with the newest is told, and the one before it taken") {
  two_ranks j;
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
    j.place.files["20/troupe-manifest.json"][5] = '?';
    CHECK(why(10) == "'20/troupe-manifest.json': the manifest is damaged: its checksum does not "
                     "match");
  }
  SUBCASE("its manifest is another step's") {
    j.place.files["20/troupe-manifest.json"] = j.place.files["10/troupe-manifest.json"];
    CHECK(why(10) == "'20/troupe-manifest.json' is of step 10");
  }
  SUBCASE("its marker says nothing: its manifest says all of it") {
    for (const auto& text :
         {std::string("../elsewhere"), std::string(), std::string(1'000'000, 'x'),
          j.place.files[".troupe/steps/20"].replace(4, 1, "?")}) {
      j.place.files[".troupe/steps/20"] = text;
      CHECK(why(20).empty());
      auto found = j.opened();
      REQUIRE(found.restore_markers());
      CHECK(j.place.files[".troupe/steps/20"].rfind("20\n1 2 ", 0) == 0);
      CHECK(j.save(found, 20).error().what.find("is the newest that is") != std::string::npos);
    }
  }
  SUBCASE("its marker cannot be read or made anew: its manifest says all of it") {
    j.place.fault = [](const char*, const std::string& name) -> std::optional<error> {
      if (name == ".troupe/steps/20")
        return error{errc::refused, "'.troupe/steps/20' cannot be read: permission denied"};
      return std::nullopt;
    };
    CHECK(why(20).empty());
    auto found = j.opened();
    CHECK(found.restore_markers());
    CHECK(error_of(j.begin(found, 20)).code == errc::refused);
    j.place.fault = nullptr;
  }
  SUBCASE("its marker names a place that is none") {
    j.place.files.erase("20/troupe-manifest.json");
    j.place.files[".troupe/steps/20"] = "../elsewhere";
    CHECK(why(10).find("'../elsewhere' is no name") != std::string::npos);
  }
  SUBCASE("its marker is damaged") {
    j.place.files.erase("20/troupe-manifest.json");
    j.place.files[".troupe/steps/20"][4] ^= 1;
    CHECK(why(10) == "its marker '.troupe/steps/20': it is damaged: its checksum does not match");
    // What is there of it may be needed: nothing is written over it, and it is not removed.
    auto found = j.opened();
    const auto before = j.place.files;
    const auto refused = error_of(j.begin(found, 20));
    CHECK(refused.code == errc::refused);
    CHECK(refused.what == "step 20 stays as it is: its marker '.troupe/steps/20': it is damaged: "
                          "its checksum does not match; if its files are not needed, remove "
                          "'.troupe/steps/20'");
    CHECK(error_of(j.commit(found, catalog.newest()->says)).code == errc::refused);
    CHECK(j.place.files == before);
    REQUIRE(found.point(j.whose));
    j.keep = {1, 0};
    CHECK(j.save(found, 30)->removed == std::vector<std::uint64_t>{10});
    CHECK(j.place.files.count("20/rank_0.pt") == 1);
  }
  SUBCASE("its marker cannot be read") {
    j.place.files.erase("20/troupe-manifest.json");
    j.place.fault = [](const char*, const std::string& name) -> std::optional<error> {
      if (name == ".troupe/steps/20")
        return error{errc::refused, "'.troupe/steps/20' cannot be read: permission denied"};
      return std::nullopt;
    };
    CHECK(why(10) == "'.troupe/steps/20' cannot be read: permission denied");
    j.place.fault = nullptr;
  }
  SUBCASE("its marker is no file of ours: it is too large") {
    j.place.files.erase("20/troupe-manifest.json");
    j.place.files[".troupe/steps/20"] = std::string(1'000'000, 'x');
    CHECK(why(10).find("more than") != std::string::npos);
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
  two_ranks j;
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

TEST_CASE("after a job went back, the newest is what it saved since") {
  two_ranks j;
  j.keep = {3, 0};
  auto catalog = j.opened();
  for (const std::uint64_t step : {10, 20, 30})
    REQUIRE(j.save(catalog, step));
  REQUIRE(j.save(catalog, 15, " again"));
  CHECK(newest_of(j.opened()) == 15);
  CHECK(j.place.files["dlrover_latest.txt"] == "15");
  // Step 20 is there from before: it is not complete any more once it is begun again.
  REQUIRE(j.begin(catalog, 20));
  CHECK(j.opened().steps().at(20).state == step_state::incomplete);
  CHECK(j.opened().steps().at(20).why == "a newer save has begun it again");
  CHECK(newest_of(j.opened()) == 15);
  REQUIRE(j.commit(catalog, j.put(20, " again")));
  CHECK(newest_of(j.opened()) == 20);
  CHECK(j.opened().newest()->says.id() == save_id{generation{1}, 5});
}

TEST_CASE("a step that a tracker may name is not begun again before the trackers are up to date") {
  two_ranks j;
  {
    auto catalog = j.opened();
    REQUIRE(j.save(catalog, 10));
    REQUIRE(j.save(catalog, 20));
    j.place.files["dlrover_latest.txt"] = "10"; // as if its process had ended before
  }
  auto catalog = j.opened();
  const auto begun = j.begin(catalog, 10);
  REQUIRE_FALSE(begun);
  CHECK(begun.error().what.find("a tracker may name it") != std::string::npos);
  REQUIRE(catalog.point(j.whose));
  CHECK(j.place.files["dlrover_latest.txt"] == "20");
  CHECK(j.begin(catalog, 10));
}

TEST_CASE("the newest complete step is not written again; a commit may be repeated") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 10));
  const auto m = catalog.newest()->says;
  const auto before = j.place.files;
  const auto refused = error_of(j.begin(catalog, 10));
  CHECK(refused.code == errc::refused);
  CHECK(refused.what == "step 10 is complete in '10' with other contents, and is the newest that "
                        "is; it stays");
  CHECK(j.place.files == before);
  auto reopened = j.opened();
  for (auto* one : {&catalog, &reopened}) {
    // The same save again, by a successor: it is complete, and stays so.
    REQUIRE(one->begin(10, "10", m.id()));
    CHECK(newest_of(*one) == 10);
    REQUIRE(j.commit(*one, m));
    CHECK(j.place.files == before);
  }
  auto other = m;
  other.shards.at(0).file.crc32 ^= 1;
  CHECK(error_of(j.commit(reopened, other)).what ==
        "step 10 is complete already, with other shards; begin it again to replace it");
  // After a newer one an older commit that is repeated takes no tracker back.
  REQUIRE(j.complete(catalog, 20));
  REQUIRE(j.commit(catalog, m));
  CHECK(j.place.files["dlrover_latest.txt"] == "20");
}

TEST_CASE("what may not be begun or committed") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 20));
  const auto refused = [&](std::uint64_t step, const char* directory) {
    const auto before = j.place.files;
    const auto what = error_of(catalog.begin(step, directory, j.next())).what;
    CHECK(j.place.files == before);
    return what;
  };
  CHECK(refused(40, "../40").find("no name") != std::string::npos);
  CHECK(refused(40, ".troupe/40") == "'.troupe/40' cannot be a step's directory");
  CHECK(refused(40, "20") == "step 40 cannot be in '20': step 20 is in '20'");
  CHECK(refused(40, "20/40") == "step 40 cannot be in '20/40': step 20 is in '20'");
  CHECK(refused(20, "other") == "step 20 is in '20' already, not in 'other'");
  CHECK(j.begin(catalog, 200)); // no part of "20"

  CHECK(error_of(j.commit(catalog, j.put(50))).what == "step 50 has ended and was removed");
  manifest empty;
  empty.step = 200;
  CHECK(error_of(j.commit(catalog, empty)).what ==
        "step 200 has 0 shards; 1 to 262144 are allowed");
}

TEST_CASE("a commit that storage has failed is repeated, and completes what is left") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 10));
  REQUIRE(j.begin(catalog, 20));
  const auto m = j.put(20);
  j.fail("put", "20/troupe-manifest.json");
  CHECK(error_of(j.commit(catalog, m)).what == "full");
  j.place.fault = nullptr;
  CHECK(newest_of(j.opened()) == 10);
  j.fail("put", "dlrover_latest.txt");
  CHECK(error_of(j.commit(catalog, m)).what == "full");
  j.place.fault = nullptr;
  CHECK(newest_of(j.opened()) == 20);
  CHECK(j.place.files["dlrover_latest.txt"] == "10"); // complete too, and older
  REQUIRE(j.commit(catalog, m));
  CHECK(j.place.files["dlrover_latest.txt"] == "20");
}

TEST_CASE("steps of versions that did not number saves are complete, and older than any save") {
  two_ranks j;
  j.last = {generation{}, 6}; // "sequence" counted the steps of the place
  {
    auto catalog = j.opened();
    REQUIRE(j.complete(catalog, 70));
    REQUIRE(j.complete(catalog, 80));
    j.place.files[".troupe/steps/70"] = "70"; // as they wrote markers
    j.place.files[".troupe/steps/80"] = "80";
  }
  auto catalog = j.opened();
  CHECK(newest_of(catalog) == 80);
  CHECK(catalog.steps().at(70).is_complete());
  CHECK(catalog.steps().at(70).begun_by == save_id{});
  REQUIRE(catalog.point(j.whose));
  j.last = {generation{1}, 0};
  REQUIRE(j.complete(catalog, 70, " again"));
  CHECK(newest_of(j.opened()) == 70);
}
