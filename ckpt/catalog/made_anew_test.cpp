// A life of a job that went back before the newest complete step, and comes to that step again.
#include "ckpt/catalog/testing/place_node.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using ports::testing::memory_place;
using node = testing::place_node;
using testing::loaded_from;

namespace {

/// Of a life that went on from `from`.
persist_request snapshot(std::uint64_t step, std::optional<std::uint64_t> from,
                         std::uint32_t shard = 0, std::uint32_t shards = 1,
                         generation life = generation{2}, std::uint64_t save_number = 1) {
  auto made = node::snapshot(step, shard, shards, life, save_number);
  if (from)
    made.to.resumed_from = {*from, 0};
  return made;
}

/// Steps 10 and 20 of a first life; of 20 the disk has other bytes by now.
struct damaged_newest {
  memory_place place;
  node n{place};

  damaged_newest() {
    REQUIRE(n.save(10, "state 10"));
    REQUIRE(n.save(20, "state 20"));
    place.files.at("20/rank_0.pt") = "state 2\xff";
  }
};

} // namespace

TEST_CASE("the newest step that was damaged is written again, also with the same bytes") {
  for (const std::string bytes : {"state 20", "other 20"}) {
    CAPTURE(bytes);
    damaged_newest d;
    REQUIRE(d.n.save(snapshot(20, 10), bytes));
    CHECK(d.place.files.at("20/rank_0.pt") == bytes);
    CHECK(d.place.files.at("dlrover_latest.txt") == "20");
    CHECK(loaded_from(d.place) == 20);
  }
}

TEST_CASE("also by the process that has saved it, once that has gone back before it") {
  for (const std::string bytes : {"state 20", "other 20"}) {
    CAPTURE(bytes);
    damaged_newest d;
    auto again = snapshot(20, 10, 0, 1, generation{1}, 21);
    again.to.resumed_from->after = 20;
    REQUIRE(d.n.save(again, bytes));
    CHECK(d.place.files.at("20/rank_0.pt") == bytes);
    auto twice = snapshot(20, 10, 0, 1, generation{1}, 22);
    twice.to.resumed_from->after = 20;
    CHECK_FALSE(d.n.save(twice, "third 20")); // That is its own, and is whole.
    CHECK(d.place.files.at("20/rank_0.pt") == bytes);
  }
}

TEST_CASE("while it is written the step before is the newest, and trackers name that") {
  damaged_newest d;
  const auto w = snapshot(20, 10);
  std::string tracker_at_put;
  d.place.fault = [&](const char* what, const std::string& name) -> std::optional<error> {
    if (std::string(what) == "put" && name == "20/rank_0.pt")
      tracker_at_put = d.place.files.at("dlrover_latest.txt");
    return std::nullopt;
  };
  const auto written = d.n.put(w, "state 20");
  REQUIRE(written);
  CHECK(tracker_at_put == "10");
  CHECK(loaded_from(d.place) == 10);
  // Its process ends here. A third life went on from memory, and comes to the same step.
  node successor(d.place);
  REQUIRE(successor.save(snapshot(20, 15, 0, 1, generation{3}), "state 20"));
  CHECK(loaded_from(d.place) == 20);
  CHECK(d.place.files.at("dlrover_latest.txt") == "20");
}

TEST_CASE("the newest step stays in every other history") {
  struct {
    const char* what;
    persist_request save;
  } const rows[] = {
      {"it was gone on from", snapshot(20, 20)},
      {"a later one was", snapshot(20, 30)},
      {"what was gone on from is not known", snapshot(20, std::nullopt)},
      {"this very life has completed it", snapshot(20, 10, 0, 1, generation{1}, 21)},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    damaged_newest d;
    const auto before = d.place.files;
    const auto refused = d.n.save(row.save, "other 20");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what == "step 20 is complete in '20' with other contents, and is the "
                                  "newest that is; it stays");
    CHECK(d.place.files.at("20/rank_0.pt") == before.at("20/rank_0.pt"));
    CHECK(loaded_from(d.place) == 20);
  }
}

TEST_CASE("the only complete step stays: there would be none to fall back on") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(20, "state 20"));
  CHECK_FALSE(n.save(snapshot(20, 10), "other 20"));
  CHECK(place.files.at("20/rank_0.pt") == "state 20");
}

TEST_CASE("of two nodes each writes its shard again, whichever is damaged") {
  for (const char* damaged : {"20/rank_0.pt", "20/rank_1.pt"}) {
    CAPTURE(damaged);
    memory_place place;
    node first(place, "n0"), second(place, "n1");
    const auto save = [&](std::uint64_t step, std::optional<std::uint64_t> from, generation life) {
      const auto a = snapshot(step, from, 0, 2, life, step),
                 b = snapshot(step, from, 1, 2, life, step);
      const auto of_first = first.put(a, "a").value();
      const auto order = node::order(a, {of_first, second.put(b, "bb").value()});
      REQUIRE(first.commit(order));
      REQUIRE(second.commit(order));
    };
    save(10, std::nullopt, generation{1});
    save(20, std::nullopt, generation{1});
    place.files.at(damaged) = "??";
    save(20, 10, generation{2});
    CHECK(place.files.at("20/rank_0.pt") == "a");
    CHECK(place.files.at("20/rank_1.pt") == "bb");
    CHECK(loaded_from(place) == 20);
  }
}

TEST_CASE("retention takes neither the step to fall back on nor the one that is written again") {
  damaged_newest d;
  auto w = snapshot(20, 10);
  w.to.keep = {1, 0};
  REQUIRE(d.n.put(w, "state 20"));
  d.n.writer.retain({w.to, {std::nullopt, save_id{generation{1}, 20}}, std::nullopt});
  CHECK(loaded_from(d.place) == 10);
  CHECK(d.place.files.count("20/rank_0.pt") == 1);
}

TEST_CASE("a file in the place itself is written again, too") {
  memory_place place;
  node n(place);
  const auto save = [&](std::uint64_t step, std::optional<std::uint64_t> from, generation life) {
    auto w = snapshot(step, from, 0, 1, life, step);
    w.to.directory = ".";
    w.to.file = "step-" + std::to_string(step) + ".pt";
    return n.save(w, "state " + std::to_string(step));
  };
  REQUIRE(save(10, std::nullopt, generation{1}));
  REQUIRE(save(20, std::nullopt, generation{1}));
  place.files.at("step-20.pt") = "state 2\xff";
  REQUIRE(save(20, 10, generation{2}));
  CHECK(place.files.at("step-20.pt") == "state 20");
  CHECK(loaded_from(place) == 20);
}
