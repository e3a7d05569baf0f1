// Several catalogs at one place: what a commit and a begin compare before they change anything.
#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

TEST_CASE("a commit compares the sizes of what it names") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 10));
  REQUIRE(j.begin(catalog, 20));
  const auto m = j.put(20);
  const auto refused = [&] {
    const auto before = j.place.files;
    const auto how = error_of(j.commit(catalog, m));
    CHECK(how.code == errc::invalid);
    CHECK(j.place.files == before);
    CHECK(newest_of(j.opened()) == 10);
    return how.what;
  };
  const std::string shard = j.place.files.at("20/rank_1.pt");
  SUBCASE("a shard is gone") {
    j.place.files.erase("20/rank_1.pt");
    CHECK(refused() == "step 20 is not what was reported: '20/rank_1.pt' is missing");
  }
  SUBCASE("a shard is another one by now") {
    j.place.files["20/rank_1.pt"] += "!";
    CHECK(refused() == "step 20 is not what was reported: '20/rank_1.pt' has 18 bytes, its "
                       "manifest says 17");
  }
  // What was wrong was put right: the same commit completes it.
  j.place.files["20/rank_1.pt"] = shard;
  REQUIRE(j.commit(catalog, m));
  CHECK(newest_of(j.opened()) == 20);
}

TEST_CASE("a node's own directory is compared for its own shards only") {
  two_ranks j;
  auto catalog = j.opened("node-a");
  REQUIRE(j.begin(catalog, 10));
  const auto m = j.put(10);
  j.place.files.erase("10/rank_1.pt"); // node-b's, in a directory of its own
  SUBCASE("and those are there") {
    REQUIRE(j.commit(catalog, m));
    CHECK(newest_of(j.opened("node-a")) == 10);
  }
  SUBCASE("and one of those is missing") {
    j.place.files.erase("10/rank_0.pt");
    CHECK(error_of(j.commit(catalog, m)).what ==
          "step 10 is not what was reported: '10/rank_0.pt' is missing");
  }
}

TEST_CASE("a commit does not complete a step that a newer save has begun meanwhile") {
  two_ranks j;
  auto older = j.opened();
  auto newer = j.opened();
  REQUIRE(j.begin(older, 10));
  const auto m = j.put(10);
  const auto others = [&] {
    REQUIRE(j.begin(newer, 10));
    return j.put(10, " of the newer save");
  };
  std::optional<manifest> later;
  SUBCASE("before it looks") {
    later = others();
    const auto how = error_of(j.commit(older, m));
    CHECK(how.code == errc::refused);
    CHECK(how.what ==
          "step 10 is not of this save any more: save 2 of generation 1 has begun it again");
    CHECK(j.place.files.count("10/troupe-manifest.json") == 0);
  }
  SUBCASE("after it has looked, right before its manifest") {
    j.before("put", "10/troupe-manifest.json", [&] { later = others(); });
    const auto how = error_of(j.commit(older, m));
    CHECK(how.code == errc::refused);
    CHECK(how.what == "step 10 was begun again or removed while it was completed");
  }
  // Its manifest, if it is there, completes nothing over the newer save's shards.
  const auto seen = j.opened();
  CHECK(newest_of(seen) == 0);
  CHECK(seen.steps().at(10).state == step_state::incomplete);
  CHECK(j.place.files.count("dlrover_latest.txt") == 0);
  REQUIRE(j.commit(newer, *later));
  CHECK(newest_of(j.opened()) == 10);
  CHECK(j.opened().newest()->says.id() == later->id());
}

TEST_CASE("a late manifest of an older save over a newer save's shards completes nothing") {
  two_ranks j;
  auto older = j.opened();
  REQUIRE(j.begin(older, 10));
  const auto m = j.put(10);
  auto newer = j.opened();
  REQUIRE(j.begin(newer, 10));
  const auto later = j.put(10, " again");
  // As a process writes it that stood still between its look and its write.
  const auto late = [&] {
    return j.storage.replace("10/troupe-manifest.json", to_text(m)).has_value();
  };
  SUBCASE("while these are being written") {
    REQUIRE(late());
    CHECK(newest_of(j.opened()) == 0);
    CHECK(j.opened().steps().at(10).why == "a newer save has begun it again");
    REQUIRE(j.commit(newer, later));
    CHECK(newest_of(j.opened()) == 10);
  }
  SUBCASE("after they are complete: the step is not, and does not pass for a whole one") {
    REQUIRE(j.commit(newer, later));
    REQUIRE(late());
    CHECK(newest_of(j.opened()) == 0);
    // A commit of the same save, again, mends it.
    REQUIRE(j.commit(newer, later));
    CHECK(j.opened().newest()->says.id() == later.id());
  }
}

TEST_CASE("a commit that came between a newer save's look and its marker is not undone if newest") {
  two_ranks j;
  auto older = j.opened();
  auto newer = j.opened();
  const auto first = j.next();
  REQUIRE(older.begin(10, "10", first));
  const auto m = j.put(10);
  const auto complete_first = [&] {
    j.before("put", ".troupe/steps/10", [&] { REQUIRE(j.commit(older, m)); });
  };
  SUBCASE("the newest that is") {
    complete_first();
    const auto refused = error_of(j.begin(newer, 10));
    CHECK(refused.code == errc::refused);
    CHECK(refused.what.find("is the newest that is; it stays") != std::string::npos);
    const auto seen = j.opened();
    CHECK(newest_of(seen) == 10);
    CHECK(seen.steps().at(10).begun_by == first);
  }
  SUBCASE("a newer one is complete too: it is begun again") {
    auto third = j.opened();
    REQUIRE(j.complete(third, 20));
    REQUIRE(newer.look_around());
    complete_first();
    REQUIRE(j.begin(newer, 10));
    CHECK(j.opened().steps().at(10).state == step_state::incomplete);
    CHECK(newest_of(j.opened()) == 20);
  }
}

TEST_CASE("an older save does not begin what a newer one has") {
  two_ranks j;
  auto catalog = j.opened();
  const auto older = j.next();
  REQUIRE(j.begin(catalog, 10));
  const std::string told =
      "step 10 is not of this save any more: save 2 of generation 1 has begun it again";
  CHECK(error_of(catalog.begin(10, "10", older)).what == told);
  REQUIRE(j.commit(catalog, j.put(10)));
  CHECK(error_of(catalog.begin(10, "10", older)).what == told);
  CHECK(newest_of(j.opened()) == 10);
}

TEST_CASE("the same save may begin a step again: by a successor, or another node") {
  two_ranks j;
  auto here = j.opened();
  auto there = j.opened();
  REQUIRE(j.begin(here, 10));
  const auto before = j.place.files;
  REQUIRE(there.begin(10, "10", j.last));
  CHECK(j.place.files == before);
  REQUIRE(j.commit(there, j.put(10)));
  REQUIRE(here.begin(10, "10", j.last));
  CHECK(newest_of(here) == 10); // complete, and stays so
}

TEST_CASE("a save that a newer manifest has made its own may be begun by it again") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 10));
  REQUIRE(j.complete(catalog, 20));
  // With the same bytes step 10 became the next save's, by its manifest alone.
  auto m = catalog.steps().at(10).says;
  m.save = j.next().number;
  REQUIRE(j.commit(catalog, m));
  CHECK(newest_of(catalog) == 10);
  const auto before = j.place.files;
  REQUIRE(catalog.begin(10, "10", m.id()));
  CHECK(newest_of(catalog) == 10);
  CHECK(newest_of(j.opened()) == 10);
  CHECK(j.place.files == before);
}

TEST_CASE("a tracker does not go back while another committer completes a newer step") {
  two_ranks j;
  auto here = j.opened();
  auto there = j.opened();
  REQUIRE(j.begin(here, 10));
  const auto m = j.put(10);
  // This one stands still between its look at what is newest and its write to the tracker.
  j.before("put", "dlrover_latest.txt", [&] { REQUIRE(j.complete(there, 20)); });
  REQUIRE(j.commit(here, m));
  CHECK(j.place.files.at("dlrover_latest.txt") == "20");
  CHECK(newest_of(here) == 20);
}

TEST_CASE("a step that is lost while its trackers are written is not called complete") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(j.begin(catalog, 10));
  const auto m = j.put(10);
  SUBCASE("with all that was there") {
    j.before("put", "dlrover_latest.txt", [&] { j.place.files.clear(); });
  }
  SUBCASE("its shard alone") {
    j.before("put", "dlrover_latest.txt", [&] { j.place.files.erase("10/rank_0.pt"); });
  }
  CHECK(error_of(j.commit(catalog, m)).what ==
        "step 10 was complete, and is not there any more: its directory was emptied or replaced "
        "meanwhile");
}
