#include "ckpt/catalog/place_writer.hpp"

#include "runtime/base/generations.hpp"
#include "runtime/ports/testing/memory_storage.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using ports::never_stops;
using ports::testing::memory_place;
using ports::testing::memory_storage;

namespace {

struct node {
  explicit node(memory_place& place, node_name who = "n0")
      : name(who), writer(std::make_unique<memory_storage>(place), who) {}

  static persist_request snapshot(std::uint64_t step, std::uint32_t shard = 0,
                                  std::uint32_t shards = 1, generation by = generation{1}) {
    persist_request w;
    w.step = step;
    w.rank = shard;
    w.made_by = by;
    w.world_size = shards;
    w.to = {"/place",
            std::to_string(step),
            "rank_" + std::to_string(shard) + ".pt",
            framework::ddp,
            shard,
            shards,
            {2, 0},
            1s};
    return w;
  }
  result<ports::receipt> write(const persist_request& w, const std::string& bytes) {
    return writer.write(w, ports::bytes_of(bytes), never_stops);
  }
  commit_order order(const persist_request& w, const std::vector<ports::receipt>& written,
                     std::uint64_t sequence = 0) const {
    commit_order o;
    o.to = w.to;
    o.says.step = w.step;
    o.says.made_by = w.made_by;
    o.says.sequence = sequence;
    o.says.world_size = w.world_size;
    o.says.layout = layout_of(w.to.whose);
    for (std::size_t i = 0; i < written.size(); ++i)
      o.says.shards.push_back({"rank_" + std::to_string(i) + ".pt", written[i], name});
    o.follows = sequence != 0;
    return o;
  }
  result<std::uint64_t> save(std::uint64_t step, const std::string& bytes,
                             generation by = generation{1}) {
    const auto w = snapshot(step, 0, 1, by);
    const auto written = write(w, bytes);
    if (!written)
      return tl::make_unexpected(written.error());
    return writer.commit(order(w, {*written}));
  }

  node_name name;
  place_writer writer;
};

/// The snapshot of a step that lies in the place itself.
persist_request snapshot_in_place(std::uint64_t step, std::uint32_t shard, std::uint32_t shards,
                                  const std::string& file) {
  auto w = node::snapshot(step, shard, shards);
  w.to.directory = ".";
  w.to.file = file;
  return w;
}

commit_order order_of(const node& n, const persist_request& w, const std::vector<shard>& shards) {
  auto o = n.order(w, {});
  o.says.shards = shards;
  return o;
}

} // namespace

TEST_CASE("a step is there, named by its tracker, and older ones go") {
  memory_place place;
  node n(place);
  for (std::uint64_t step = 1; step <= 4; ++step)
    CHECK(n.save(step, "state " + std::to_string(step)) == step);
  CHECK(place.files.at("dlrover_latest.txt") == "4");
  CHECK(place.files.at("4/rank_0.pt") == "state 4");
  CHECK(place.files.count("3/rank_0.pt") == 1);
  CHECK(place.files.count("2/rank_0.pt") == 0);
}

TEST_CASE("what was saved is not written again, by a successor either") {
  memory_place place;
  node(place).save(7, "state").value();
  int puts = 0;
  place.fault = [&](const char* operation, const std::string& name) -> std::optional<error> {
    puts += std::string(operation) == "put" && name == "7/rank_0.pt" ? 1 : 0;
    return std::nullopt;
  };
  node successor(place);
  const auto w = node::snapshot(7);
  const auto written = successor.write(w, "state");
  REQUIRE(written);
  CHECK(written->bytes == 5);
  CHECK(successor.writer.commit(successor.order(w, {*written})) == 1);
  CHECK(puts == 0);
}

TEST_CASE("a job that went back writes its steps anew, but for the one that it went back to") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(10, "first life"));
  REQUIRE(n.save(20, "first life"));
  CHECK(n.save(20, "same step", generation{2}) == 2);
  CHECK(place.files.at("20/rank_0.pt") == "first life");
  CHECK(n.save(10, "second life", generation{2}) == 3);
  CHECK(place.files.at("10/rank_0.pt") == "second life");
  CHECK(place.files.at("dlrover_latest.txt") == "10");
}

TEST_CASE("the newest step stays when another world wants it") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(5, "of one"));
  const auto refused = n.write(node::snapshot(5, 1, 2, generation{2}), "of two");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what ==
        "step 5 is complete in '5', without a file rank_1.pt: a world of 1 saved it; it stays");
}

TEST_CASE("a step that could not be written harms none, and its room is had again") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(1, "state 1"));
  place.fault = [&](const char* operation, const std::string& name) -> std::optional<error> {
    if (std::string(operation) == "put" && name.rfind("2/", 0) == 0)
      return error{errc::unavailable, "'" + name + "': no space left on device"};
    return std::nullopt;
  };
  const auto full = n.save(2, "state 2");
  REQUIRE_FALSE(full);
  CHECK(full.error().what == "'2/rank_0.pt': no space left on device");
  CHECK(place.files.at("dlrover_latest.txt") == "1");
  place.fault = nullptr;
  CHECK(n.save(3, "state 3") == 2);
  CHECK(place.files.count(".troupe/steps/2") == 0);
}

TEST_CASE("two nodes of one directory make one step, committed once") {
  memory_place place;
  node first(place, "n0"), second(place, "n1");
  const auto w0 = node::snapshot(1, 0, 2), w1 = node::snapshot(1, 1, 2);
  const std::vector<ports::receipt> written{first.write(w0, "a").value(),
                                            second.write(w1, "bb").value()};
  const auto sequence = first.writer.commit(first.order(w0, written));
  REQUIRE(sequence);
  int written_again = 0;
  place.fault = [&](const char* operation, const std::string&) -> std::optional<error> {
    written_again += std::string(operation) == "put" ? 1 : 0;
    return std::nullopt;
  };
  CHECK(second.writer.commit(second.order(w1, written, *sequence)) == *sequence);
  CHECK(written_again == 0);
  // The second knows what the first has counted.
  CHECK(second.save(2, "c") == *sequence + 1);
}

TEST_CASE("a step that is overtaken while it is written does not become the newest") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(1, "state 1"));
  const auto slow = node::snapshot(2);
  const auto written = n.write(slow, "state 2");
  REQUIRE(n.save(3, "state 3") == 2);
  CHECK(n.writer.commit(n.order(slow, {*written})) == 2);
  CHECK(place.files.at("dlrover_latest.txt") == "3");
  // Nor for a later process; and the count goes on.
  node successor(place);
  CHECK(successor.save(4, "state 4") == 3);
  CHECK(place.files.at("dlrover_latest.txt") == "4");
  CHECK(place.files.count("3/rank_0.pt") == 1);
}

// Generations of two masters, each on its side of a cut; both sides have the directory.
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
  const auto written = here.write(slow, "of one side");
  REQUIRE(there.save(2, "of the others", of_the_others));
  const auto late = here.writer.commit(here.order(slow, {*written}));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == errc::refused);
  CHECK(late.error().what ==
        fmt::format("generation 3 of term 1763935000123 saves nothing here any more, since the "
                    "newer generation 2 of term 1763935060456 has; if that is none of this job, "
                    "use another directory or remove '.troupe/generations/{}'",
                    of_the_others.value));
  CHECK_FALSE(here.save(4, "of one side", isolated));
  // Nor does a process that begins now.
  CHECK_FALSE(node(place, "n0").save(5, "of one side", isolated));
  CHECK(newest_in(place) == "2");
  CHECK(place.files.count("3/.troupe-manifest.json") + place.files.count("4/rank_0.pt") == 0);
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
  const auto written = there.write(newer, "of the others");
  REQUIRE(here.save(12, "of one side", isolated));
  REQUIRE(there.writer.commit(there.order(newer, {*written})));
  CHECK(newest_in(place) == "11");
  // Also for a process that finds it so.
  CHECK(node(place, "n2").save(13, "of the others", of_the_others) == 4);
  CHECK(place.files.count("11/rank_0.pt") == 1);
}

TEST_CASE("a late commit of an older generation of one master does not undo that it went back") {
  memory_place place;
  node n(place);
  const auto slow = node::snapshot(100, 0, 1, generation{1});
  const auto written = n.write(slow, "first life");
  REQUIRE(n.save(60, "second life", generation{2}));
  CHECK_FALSE(n.writer.commit(n.order(slow, {*written})));
  CHECK(newest_in(place) == "60");
}

TEST_CASE("processes that no master has started have no generation, and are not refused for it") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(1, "under a master", isolated));
  CHECK(n.save(2, "alone", generation{}) == 2);
  CHECK(n.save(3, "under a master again", isolated) == 3);
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

TEST_CASE("steps in the place itself, with a shard of each of two nodes") {
  memory_place shared;
  node first(shared, "n0"), second(shared, "n1");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto a = snapshot_in_place(step, 0, 2, "a-" + std::to_string(step));
    const auto b = snapshot_in_place(step, 1, 2, "b-" + std::to_string(step));
    const auto order = order_of(first, a,
                                {{a.to.file, first.write(a, "a").value(), "n0"},
                                 {b.to.file, second.write(b, "bb").value(), "n1"}});
    REQUIRE(first.writer.commit(order));
    // A successor sees that it is written.
    CHECK(node(shared, "n1").write(b, "other").value().bytes == 2);
  }
  CHECK(shared.files.at("a-3") == "a");
  CHECK(shared.files.at("b-2") == "bb");
  CHECK(shared.files.count("a-1") + shared.files.count("b-1") == 0); // two are kept
  CHECK(shared.files.at("dlrover_latest.txt") == "3");
}

TEST_CASE("steps in the place itself, where each of two nodes has a directory of its own") {
  memory_place here, there;
  node first(here, "n0"), second(there, "n1");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto a = snapshot_in_place(step, 0, 2, "a-" + std::to_string(step));
    const auto b = snapshot_in_place(step, 1, 2, "b-" + std::to_string(step));
    auto order = order_of(first, a,
                          {{a.to.file, first.write(a, "a").value(), "n0"},
                           {b.to.file, second.write(b, "bb").value(), "n1"}});
    order.says.sequence = first.writer.commit(order).value();
    order.follows = true;
    CHECK(second.writer.commit(order) == order.says.sequence);
  }
  CHECK(here.files.count("a-1") + there.files.count("b-1") == 0);
  CHECK(here.files.count("a-3") + there.files.count("b-3") == 2);
  CHECK(here.files.count("b-3") + there.files.count("a-3") == 0);
}

TEST_CASE("a file in the place that is another step's is told, and stays with its step") {
  memory_place place;
  node n(place);
  const auto save = [&n](std::uint64_t step, const std::string& bytes) -> result<std::uint64_t> {
    const auto w = snapshot_in_place(step, 0, 1, "model.pt");
    const auto written = n.write(w, bytes);
    if (!written)
      return tl::make_unexpected(written.error());
    return n.writer.commit(order_of(n, w, {{"model.pt", *written, "n0"}}));
  };
  REQUIRE(save(1, "state 1"));
  const auto refused = save(2, "state 2");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "step 2 cannot be in 'model.pt': step 1 is in the file "
                                "'model.pt'; name files by their step");
  CHECK(place.files.at("model.pt") == "state 1");
  // In a directory of its own it may be called so; then the step that was refused is forgotten.
  REQUIRE(n.save(3, "state 3"));
  CHECK(place.files.count(".troupe/steps/2") == 0);
  CHECK(place.files.at("model.pt") == "state 1");
}

TEST_CASE("two nodes with a directory each commit the same step in both") {
  memory_place here, there;
  node first(here, "n0"), second(there, "n1");
  const auto w0 = node::snapshot(1, 0, 2), w1 = node::snapshot(1, 1, 2);
  auto order = first.order(w0, {first.write(w0, "a").value(), second.write(w1, "bb").value()});
  order.says.shards[1].node = "n1";
  order.says.sequence = first.writer.commit(order).value();
  order.follows = true;
  CHECK(second.writer.commit(order) == order.says.sequence);
  for (auto* place : {&here, &there})
    CHECK(place->files.at("dlrover_latest.txt") == "1");
  CHECK(here.files.at("1/.troupe-manifest.json") == there.files.at("1/.troupe-manifest.json"));
}
