// Two masters of one job, each on its side of a cut of the network; both sides have the directory.
#include "ckpt/catalog/place_writer.hpp"
#include "ckpt/catalog/testing/place_node.hpp"
#include "runtime/base/generations.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using ports::testing::memory_place;
using node = testing::place_node;

namespace {

const auto isolated = next_generation(generation{2}, term{1'763'935'000'123});
const auto of_the_others = next_generation(generation{1}, term{1'763'935'060'456});

/// The step that its tracker names.
std::string newest_in(memory_place& place) {
  return place.files.at("dlrover_latest.txt");
}

} // namespace

TEST_CASE("the isolated side completes nothing once the others have") {
  memory_place place;
  node here(place, "n0"), there(place, "n1");
  REQUIRE(here.save(1, "before the cut", isolated));
  const auto slow = node::snapshot(3, 0, 1, isolated);
  const auto written = here.put(slow, "of one side");
  REQUIRE(there.save(2, "of the others", of_the_others));
  const auto late = here.commit(node::order(slow, {*written}));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == errc::refused);
  CHECK(late.error().what ==
        "generation 3 of term 1763935000123 saves nothing here any more, since the newer "
        "generation 2 of term 1763935060456 has; if that is none of this job, two jobs have one "
        "directory: give each its own");
  CHECK_FALSE(here.save(4, "of one side", isolated));
  // Nor does a process that begins now.
  CHECK_FALSE(node(place, "n0").save(5, "of one side", isolated));
  CHECK(newest_in(place) == "2");
  CHECK(place.files.count("3/troupe-manifest.json") + place.files.count("4/rank_0.pt") == 0);
  CHECK(there.save(6, "of the others", of_the_others.next()));
  CHECK(newest_in(place) == "6");
}

TEST_CASE("of one step on both sides the newer side's stays, whole and named") {
  memory_place place;
  node here(place, "n0"), there(place, "n1");
  REQUIRE(there.save(2, "of the others", of_the_others));
  REQUIRE(there.save(3, "of the others", of_the_others));
  for (const std::uint64_t step : {2, 3})
    CHECK_FALSE(here.save(step, "of one side", isolated));
  CHECK(place.files.at("2/rank_0.pt") == "of the others");
  CHECK(place.files.at("3/rank_0.pt") == "of the others");
  CHECK(newest_in(place) == "3");
}

TEST_CASE("what the isolated side completes while the newer one writes is not the newest") {
  memory_place place;
  node here(place, "n0"), there(place, "n1");
  REQUIRE(here.save(10, "before the cut", isolated));
  const auto newer = node::snapshot(11, 0, 1, of_the_others);
  const auto written = there.put(newer, "of the others");
  REQUIRE(here.save(12, "of one side", isolated));
  REQUIRE(there.commit(node::order(newer, {*written})));
  CHECK(newest_in(place) == "11");
  // Also for a process that finds it so.
  CHECK(node(place, "n2").save(13, "of the others", of_the_others));
  CHECK(newest_in(place) == "13");
  CHECK(place.files.count("11/rank_0.pt") == 1);
}

TEST_CASE("a late commit of an older generation of one master does not undo that it went back") {
  memory_place place;
  node n(place);
  const auto slow = node::snapshot(100, 0, 1, generation{1});
  const auto written = n.put(slow, "first life");
  REQUIRE(n.save(60, "second life", generation{2}));
  CHECK_FALSE(n.commit(node::order(slow, {*written})));
  CHECK(newest_in(place) == "60");
}

TEST_CASE("processes that no master has started are not refused for a generation on record") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(1, "under a master", isolated));
  // Without a generation, its saves are complete and older than all that have one.
  CHECK(n.save(2, "alone", generation{}));
  CHECK(place.files.count("2/troupe-manifest.json") == 1);
  CHECK(newest_in(place) == "1");
  CHECK(n.save(3, "under a master again", isolated));
  CHECK(newest_in(place) == "3");
}

TEST_CASE(
    "processes of a later term are newer than all before them, at a place of an earlier job") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(500, "an earlier job", isolated));
  REQUIRE(n.save(node::snapshot(20, 0, 1, of_the_others, 1), "a later one"));
  CHECK(newest_in(place) == "20");
}

TEST_CASE("one generation is on record at a place, however many have saved there") {
  memory_place place;
  node n(place);
  place.files[".troupe/generations/notes.txt"] = "a user's";
  for (std::uint64_t g = 1; g <= 9; ++g)
    REQUIRE(n.save(g, "state", generation{g}));
  std::string on_record;
  for (const auto& [name, content] : place.files)
    if (name.rfind(".troupe/generations/", 0) == 0)
      on_record += name + " ";
  CHECK(on_record == ".troupe/generations/9 .troupe/generations/notes.txt ");
}
