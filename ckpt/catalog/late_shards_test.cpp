// A shard that is put after its step was given up and removed: a slow disk, a process that stood
// still. Without an owner it would stay for ever, and its directory would pass for another
// program's.
#include "ckpt/catalog/testing/place_node.hpp"
#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

namespace {

/// Writes a shard; right before it is put another node saves step 3, and step 2 has ended.
result<ports::receipt> write_late(two_ranks& j, place_node& late, const persist_request& w) {
  place_node other(j.place, "n1");
  const auto file = w.to.directory == "." ? w.to.file : w.to.directory + "/" + w.to.file;
  j.before("put", file, [&] { REQUIRE(other.save(3, "state 3")); });
  return late.write(w, "state 2");
}

bool has(const two_ranks& j, const std::string& name) {
  return j.place.files.count(name) == 1;
}

} // namespace

TEST_CASE("a shard whose step was removed while it was written is told, and takes no place") {
  for (const bool in_the_place : {false, true})
    for (const bool saved_again : {false, true}) {
      CAPTURE(in_the_place);
      two_ranks j;
      place_node late(j.place);
      const std::string file = in_the_place ? "step-2.pt" : "2/rank_0.pt";
      auto w =
          in_the_place ? place_node::snapshot_in_place(2, 0, 1, file) : place_node::snapshot(2);
      const auto refused = error_of(write_late(j, late, w));
      CHECK(refused.code == errc::refused);
      CHECK(refused.what == "step 2 has ended and was removed");
      const auto found = j.opened();
      CHECK(newest_of(found) == 3);
      // The directory, which may have been made again, has an owner.
      CHECK((found.find(2) != nullptr) == !in_the_place);
      CHECK_FALSE(has(j, file));
      if (saved_again) {
        // A later save of the step takes it over.
        w.made_by = generation{2};
        const auto again = late.save(w, "again 2");
        REQUIRE_MESSAGE(again, again.error().what);
        CHECK(j.place.files.at(file) == "again 2");
        CHECK(newest_of(j.opened()) == 2);
      } else {
        REQUIRE(late.save(4, "state 4"));
        CHECK_FALSE(has(j, file));
        CHECK_FALSE(has(j, ".troupe/steps/2"));
        CHECK_FALSE(has(j, ".troupe/in_place/2/step-2.pt"));
      }
    }
}

TEST_CASE("a shard whose marker went with an earlier save's is written all the same") {
  for (const bool in_the_place : {false, true}) {
    CAPTURE(in_the_place);
    two_ranks j;
    place_node here(j.place);
    REQUIRE(here.save(1, "state 1"));
    const std::string file = in_the_place ? "step-2.pt" : "2/rank_0.pt";
    auto w = in_the_place ? place_node::snapshot_in_place(2, 0, 1, file) : place_node::snapshot(2);
    w.made_by = generation{2};
    // Another node's retention had looked before this save began.
    j.before("put", file, [&] {
      REQUIRE(j.storage.remove(".troupe/in_place/2"));
      REQUIRE(j.storage.remove(".troupe/steps/2"));
    });
    const auto written = here.save(w, "state 2");
    REQUIRE_MESSAGE(written, written.error().what);
    CHECK(newest_of(j.opened()) == 2);
    CHECK(j.place.files.at(file) == "state 2");
  }
}

TEST_CASE("a shard that takes its place in the moment of its step's removal has an owner") {
  two_ranks j;
  auto catalog = j.opened();
  const auto check = [&](const std::string& directory, const std::string& file) {
    return catalog.check_put(2, directory, file, {generation{1}, 1});
  };
  for (const std::string directory : {"2", "."}) {
    const auto refused = error_of(check(directory, "a.pt"));
    CHECK(refused.code == errc::refused);
    CHECK(refused.what.find("step 2 has ended and was removed while") == 0);
    CHECK(j.opened().steps().at(2).state == step_state::incomplete);
    CHECK(has(j, ".troupe/in_place/2/a.pt") == (directory == "."));
    // The marker is there again for the first that was late; each file in the place needs a claim.
    const auto second = check(directory, "b.pt");
    CHECK(second.has_value() == (directory == "2"));
    CHECK(has(j, ".troupe/in_place/2/b.pt") == (directory == "."));
    REQUIRE(j.storage.remove(".troupe"));
  }
}

TEST_CASE("a shard in the place whose step was begun again meanwhile is claimed for that") {
  two_ranks j;
  auto catalog = j.opened();
  REQUIRE(catalog.begin(2, ".", {generation{2}, 1}));
  const auto refused = error_of(catalog.check_put(2, ".", "b.pt", {generation{1}, 1}));
  CHECK(refused.what ==
        "step 2 is not of this save any more: save 1 of generation 2 has begun it again");
  CHECK(has(j, ".troupe/in_place/2/b.pt"));
  CHECK(j.opened().find(2)->begun_by == save_id{generation{2}, 1});
}

TEST_CASE("a shard that comes while its step is being removed keeps the step for the next time") {
  two_ranks j;
  j.keep = {1, 0};
  auto catalog = j.opened();
  std::string file = "10/rank_0.pt";
  const auto write = [&] { REQUIRE(j.storage.replace(file, "late")); };
  SUBCASE("in a directory") {
    REQUIRE(j.begin(catalog, 10));
  }
  SUBCASE("in the place itself") {
    file = "step-10.pt";
    REQUIRE(catalog.begin(10, ".", j.next()));
    REQUIRE(catalog.claim(10, file));
  }
  REQUIRE(j.complete(catalog, 20));
  // Its writer has seen the marker, which goes now.
  j.before("remove", ".troupe/steps/10", write);
  const auto done = catalog.retain(j.keep, {j.last, j.last});
  CHECK(done.removed.empty());
  CHECK_FALSE(done.not_removed);
  CHECK(j.opened().find(10) != nullptr);
  CHECK(catalog.retain(j.keep, {j.last, j.last}).removed == std::vector<std::uint64_t>{10});
  CHECK_FALSE(has(j, file));
  CHECK(j.opened().find(10) == nullptr);
}

TEST_CASE(
    "a claim that is made while its step's claims are removed keeps the step for the next time") {
  two_ranks j;
  j.keep = {1, 0};
  auto catalog = j.opened();
  REQUIRE(catalog.begin(10, ".", j.next()));
  REQUIRE(catalog.claim(10, "a.pt"));
  REQUIRE(j.storage.replace("a.pt", "state"));
  REQUIRE(j.complete(catalog, 20));
  // Another node's shard has taken its place, after the removal had looked which files there are.
  auto other = j.opened();
  j.before("remove", ".troupe/in_place/10/a.pt", [&] {
    REQUIRE(j.storage.replace("b.pt", "late"));
    REQUIRE_FALSE(other.check_put(10, ".", "b.pt", {generation{1}, 1}));
  });
  CHECK(catalog.retain(j.keep, {j.last, j.last}).removed.empty());
  CHECK(has(j, "b.pt"));
  CHECK(catalog.retain(j.keep, {j.last, j.last}).removed == std::vector<std::uint64_t>{10});
  CHECK_FALSE(has(j, "b.pt"));
  CHECK_FALSE(has(j, ".troupe/in_place/10/b.pt"));
}

TEST_CASE(
    "a save that begins a step while its claims are removed keeps its marker and its claims") {
  two_ranks j;
  j.keep = {1, 0};
  auto catalog = j.opened();
  REQUIRE(catalog.begin(10, ".", j.next()));
  REQUIRE(catalog.claim(10, "a.pt"));
  REQUIRE(j.complete(catalog, 20));
  auto newer = j.opened();
  const save_id again{generation{9}, 1};
  j.before("remove", ".troupe/in_place/10/a.pt", [&] {
    REQUIRE(newer.begin(10, ".", again));
    REQUIRE(newer.claim(10, "b.pt"));
  });
  CHECK(catalog.retain(j.keep, {j.last, j.last}).removed.empty());
  CHECK(j.opened().find(10)->begun_by == again);
  CHECK(has(j, ".troupe/in_place/10/b.pt"));
}

TEST_CASE(
    "a shard in the place whose claim and marker go after it was put is written all the same") {
  two_ranks j;
  place_node here(j.place);
  REQUIRE(here.save(1, "state 1"));
  auto w = place_node::snapshot_in_place(2, 0, 1, "step-2.pt");
  w.made_by = generation{2};
  // Another node's retention, which had looked before this save began: it takes the marker when the
  // shard has just been put, and then all claims, this save's new one too.
  const auto marker = ".troupe/steps/2";
  const auto takes_all = [&] {
    REQUIRE(j.storage.remove(".troupe/in_place/2"));
    REQUIRE(j.storage.remove(marker));
  };
  j.before("put", "step-2.pt", [&] {
    j.before("get", marker, [&] { // asked whether the file may take its place
      j.before("get", marker, [&] {
        takes_all();
        j.before("put", marker, takes_all);
      });
    });
  });
  const auto written = here.save(w, "state 2");
  REQUIRE_MESSAGE(written, written.error().what);
  CHECK(newest_of(j.opened()) == 2);
  CHECK(j.place.files.at("step-2.pt") == "state 2");
}

TEST_CASE("a shard that was written while a newer save has begun its step is told to its process") {
  two_ranks j;
  place_node older(j.place, "n0"), newer(j.place, "n1");
  j.before("put", "2/rank_0.pt",
           [&] { REQUIRE(newer.write(place_node::snapshot(2, 0, 1, generation{2}), "newer 2")); });
  const auto refused = error_of(older.write(place_node::snapshot(2), "older 2"));
  CHECK(refused.code == errc::refused);
  CHECK(refused.what ==
        "step 2 is not of this save any more: save 2 of generation 2 has begun it again");
}
