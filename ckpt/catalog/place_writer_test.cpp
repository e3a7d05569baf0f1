#include "ckpt/catalog/place_writer.hpp"

#include "ckpt/catalog/testing/place_node.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using ports::testing::memory_place;
using ports::testing::memory_storage;
using node = testing::place_node;
using testing::loaded_from;

namespace {

/// How often something was put under a name that begins so, from now on.
struct puts_of {
  puts_of(memory_place& place, std::string prefix) {
    place.fault = [this, prefix = std::move(prefix)](
                      const char* what, const std::string& name) -> std::optional<error> {
      count += std::string(what) == "put" && name.rfind(prefix, 0) == 0 ? 1 : 0;
      return std::nullopt;
    };
  }
  int count = 0;
};

} // namespace

TEST_CASE("a step is there, named by its tracker, and older ones go") {
  memory_place place;
  node n(place);
  for (std::uint64_t step = 1; step <= 4; ++step)
    CHECK(n.save(step, "state " + std::to_string(step)).value().warnings.empty());
  CHECK(place.files.at("dlrover_latest.txt") == "4");
  CHECK(place.files.at("4/rank_0.pt") == "state 4");
  CHECK(place.files.count("3/rank_0.pt") == 1);
  CHECK(place.files.count("2/rank_0.pt") == 0);
}

TEST_CASE("what was saved is not written again, by a successor either") {
  memory_place place;
  node(place).save(7, "state").value();
  const puts_of puts(place, "7/");
  node successor(place);
  const auto w = node::snapshot(7);
  const auto written = successor.put(w, "state");
  REQUIRE(written);
  CHECK(written->file.bytes == 5);
  CHECK(successor.commit(node::order(w, {*written})));
  CHECK(loaded_from(place) == 7);
  // A process that opens a place makes durable what it only saw there, the newest manifest.
  CHECK(puts.count == 1);
}

TEST_CASE("an older complete step that a successor is asked to write again is left alone") {
  memory_place place;
  const auto w = node::snapshot(7);
  node first(place);
  REQUIRE(first.save(w, "state 7"));
  REQUIRE(first.save(8, "state 8"));
  // The supervisor crashes before the snapshot of step 7 is finalized: its successor hears of it
  // again, after step 8 was completed.
  const auto before = place.files;
  node successor(place);
  SUBCASE("of the same save") {
    const auto written = successor.put(w, "state 7");
    REQUIRE(written);
    CHECK(place.files == before);
    CHECK(successor.commit(node::order(w, {*written})));
    CHECK(place.files == before);
  }
  SUBCASE("of a later save with the same bytes, which then is the newest") {
    const auto again = node::snapshot(7, 0, 1, generation{2}, 1);
    const auto written = successor.put(again, "state 7");
    REQUIRE(written);
    CHECK(place.files == before);
    CHECK(loaded_from(place) == 8);
    const puts_of puts(place, "7/rank_0.pt");
    CHECK(successor.commit(node::order(again, {*written})));
    CHECK(puts.count == 0);
    CHECK(loaded_from(place) == 7);
    CHECK(place.files.at("dlrover_latest.txt") == "7");
  }
  SUBCASE("of a later save with others, which it becomes") {
    REQUIRE(successor.save(node::snapshot(7, 0, 1, generation{2}, 1), "other 7"));
    CHECK(place.files.at("7/rank_0.pt") == "other 7");
    CHECK(loaded_from(place) == 7);
  }
  SUBCASE("of a later save with as many bytes and others, which it becomes") {
    REQUIRE(successor.save(node::snapshot(7, 0, 1, generation{2}, 1), "State 7"));
    CHECK(place.files.at("7/rank_0.pt") == "State 7");
  }
}

TEST_CASE("a job that went back writes its steps anew, but for the one that it went back to") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(10, "first life"));
  REQUIRE(n.save(20, "first life"));
  // It loaded step 20, and saves that again with the same contents: it is there.
  REQUIRE(n.save(node::snapshot(20, 0, 1, generation{2}, 1), "first life"));
  // With others it would be incomplete until it is written, and it is the newest.
  const auto refused = n.save(node::snapshot(20, 0, 1, generation{2}, 2), "other state");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what == "step 20 is complete in '20' with other contents, and is the "
                                "newest that is; it stays");
  CHECK(place.files.at("20/rank_0.pt") == "first life");
  CHECK(n.save(node::snapshot(10, 0, 1, generation{2}, 3), "second life"));
  CHECK(place.files.at("10/rank_0.pt") == "second life");
  CHECK(place.files.at("dlrover_latest.txt") == "10");
  // Now it is not the newest any more.
  CHECK(n.save(node::snapshot(20, 0, 1, generation{2}, 4), "second life"));
  CHECK(place.files.at("20/rank_0.pt") == "second life");
  CHECK(loaded_from(place) == 20);
}

TEST_CASE("the newest step stays when another world wants it") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(5, "of one"));
  for (const std::uint32_t shard : {0, 1}) {
    const auto refused = n.write(node::snapshot(5, shard, 2, generation{2}), "of one");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what == "step 5 is complete in '5' with other contents, and is the "
                                  "newest that is; it stays");
  }
  CHECK(loaded_from(place) == 5);
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
  CHECK(n.save(3, "state 3"));
  CHECK(place.files.count(".troupe/steps/2") == 0);
}

TEST_CASE("what retention could not do is told with the next commit, and done then") {
  memory_place place;
  node n(place);
  for (const std::uint64_t step : {1, 2})
    REQUIRE(n.save(step, "state"));
  place.fault = [](const char* operation, const std::string& name) -> std::optional<error> {
    if (operation == std::string("remove") && name == "1")
      return error{errc::unavailable, "the disk is slow today"};
    return std::nullopt;
  };
  CHECK(n.save(3, "state").value().warnings.empty());
  place.fault = nullptr;
  CHECK(n.save(4, "state").value().warnings ==
        std::vector<std::string>{"an earlier step could not be removed: the disk is slow today"});
  CHECK(place.files.count("1/rank_0.pt") + place.files.count(".troupe/steps/1") == 0);
  CHECK(n.save(5, "state").value().warnings.empty());
}

TEST_CASE("two nodes of one directory make one step, committed once") {
  memory_place place;
  node first(place, "n0"), second(place, "n1");
  const auto w0 = node::snapshot(1, 0, 2), w1 = node::snapshot(1, 1, 2);
  const auto order = node::order(w0, {first.put(w0, "a").value(), second.put(w1, "bb").value()});
  CHECK(loaded_from(place) == 0);
  REQUIRE(first.commit(order));
  const puts_of puts(place, "1/");
  CHECK(second.commit(order));
  CHECK(puts.count == 0);
  CHECK(loaded_from(place) == 1);
  // The second goes on from what the first has completed.
  CHECK(second.save(2, "c"));
  CHECK(loaded_from(place) == 2);
}

TEST_CASE("a step that is overtaken while it is written does not become the newest") {
  memory_place place;
  node n(place);
  REQUIRE(n.save(1, "state 1"));
  const auto slow = node::snapshot(2), fast = node::snapshot(3);
  const auto written = n.put(slow, "state 2");
  const auto overtaking = node::order(fast, {n.put(fast, "state 3").value()});
  REQUIRE(n.writer.commit(overtaking));
  n.writer.retain({overtaking.to, {overtaking.says.id(), slow.id()}}); // save 2 has not ended
  CHECK(n.commit(node::order(slow, {*written})));
  CHECK(place.files.at("dlrover_latest.txt") == "3");
  CHECK(place.files.count("2/troupe-manifest.json") == 1);
  CHECK(loaded_from(place) == 3);
  // Nor for a later process.
  node successor(place);
  CHECK(successor.save(4, "state 4"));
  CHECK(place.files.at("dlrover_latest.txt") == "4");
  CHECK(place.files.count("3/rank_0.pt") == 1);
  CHECK(place.files.count("2/rank_0.pt") == 0);
}

TEST_CASE("a step that another committer overtakes takes its tracker back at no moment") {
  memory_place place;
  node slow(place, "n0"), fast(place, "n1");
  REQUIRE(slow.save(1, "state 1"));
  const auto w = node::snapshot(2), newer = node::snapshot(3);
  const auto order = node::order(w, {slow.put(w, "state 2").value()});
  REQUIRE(fast.writer.commit(node::order(newer, {fast.put(newer, "state 3").value()})));
  const puts_of puts(place, "dlrover_latest.txt");
  REQUIRE(slow.commit(order));
  CHECK(puts.count == 0);
  CHECK(place.files.at("dlrover_latest.txt") == "3");
}

TEST_CASE("a step is saved again with the same bytes while retention is about to remove it") {
  memory_place place;
  const auto saved = std::make_shared<steps_saved_again>();
  place_writer writes(std::make_unique<memory_storage>(place), "n0", saved);
  place_writer commits(std::make_unique<memory_storage>(place), "n0", saved);
  std::uint64_t saves = 0;
  const auto save = [&](std::uint64_t step, const std::function<void()>& meanwhile) {
    const auto w = node::snapshot(step, 0, 1, generation{1}, ++saves);
    const auto written = writes.write(w, ports::bytes_of(std::to_string(step)), ports::never_stops);
    REQUIRE(written);
    meanwhile();
    const auto o = node::order(w, {shard{w.to.file, *written, "n0"}});
    const auto done = commits.commit(o);
    REQUIRE_MESSAGE(done, done.error().what);
    return o;
  };
  // The retention of the save before comes when the next one has found its bytes on the disk.
  std::optional<commit_order> before;
  const auto retains = [&] {
    if (before)
      commits.retain({before->to, {before->says.id(), before->says.id()}});
  };
  for (const std::uint64_t step : {12, 3, 4, 12, 3, 4, 12})
    before = save(step, retains);
  CHECK(loaded_from(place) == 12);
  retains();
  CHECK(place.files.count("3/rank_0.pt") == 0); // two are kept: 4 and 12
  CHECK(place.files.count("4/rank_0.pt") == 1);
}

TEST_CASE("a step that is overtaken and given up completes nothing when it is late") {
  memory_place place;
  node n(place);
  const auto slow = node::snapshot(2);
  const auto written = n.put(slow, "state 2");
  REQUIRE(n.save(3, "state 3")); // saves before 3 have ended
  CHECK(place.files.count("2/rank_0.pt") == 0);
  const auto late = n.commit(node::order(slow, {*written}));
  REQUIRE_FALSE(late);
  CHECK(late.error().what == "step 2 has ended and was removed");
  CHECK(loaded_from(place) == 3);
}

TEST_CASE("steps in the place itself, with a shard of each of two nodes") {
  memory_place shared;
  node first(shared, "n0"), second(shared, "n1");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto a = node::snapshot_in_place(step, 0, 2, "a-" + std::to_string(step));
    const auto b = node::snapshot_in_place(step, 1, 2, "b-" + std::to_string(step));
    REQUIRE(first.commit(node::order(a, {first.put(a, "a").value(), second.put(b, "bb").value()})));
    // A successor sees that it is written.
    CHECK(node(shared, "n1").write(b, "other").value().bytes == 2);
  }
  CHECK(shared.files.at("a-3") == "a");
  CHECK(shared.files.at("b-2") == "bb");
  CHECK(shared.files.count("a-1") + shared.files.count("b-1") == 0); // two are kept
  CHECK(shared.files.at("dlrover_latest.txt") == "3");
}

TEST_CASE("a file in the place that is another step's is told, and stays with its step") {
  memory_place place;
  node n(place);
  const auto save = [&n](std::uint64_t step, const std::string& bytes) {
    return n.save(node::snapshot_in_place(step, 0, 1, "model.pt"), bytes);
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

// ---- directories of each node's own ------------------------------------------------------------

TEST_CASE("steps in the place itself, where each of two nodes has a directory of its own") {
  memory_place here, there;
  node first(here, "n0"), second(there, "n1");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto a = node::snapshot_in_place(step, 0, 2, "a-" + std::to_string(step));
    const auto b = node::snapshot_in_place(step, 1, 2, "b-" + std::to_string(step));
    const auto order = node::order(a, {first.put(a, "a").value(), second.put(b, "bb").value()});
    REQUIRE(first.commit(order));
    CHECK(second.commit(order));
  }
  CHECK(here.files.count("a-1") + there.files.count("b-1") == 0);
  CHECK(here.files.count("a-3") + there.files.count("b-3") == 2);
  CHECK(here.files.count("b-3") + there.files.count("a-3") == 0);
}

TEST_CASE("a node that finds a step completed by another knows that they have one directory") {
  memory_place shared, there;
  node first(shared, "n0"), second(shared, "n1"), apart(there, "n2");
  const auto w0 = node::snapshot(1, 0, 3), w1 = node::snapshot(1, 1, 3),
             w2 = node::snapshot(1, 2, 3);
  const auto order = node::order(
      w0, {first.put(w0, "a").value(), second.put(w1, "b").value(), apart.put(w2, "c").value()});
  CHECK_FALSE(first.writer.commit(order).value().shared);
  CHECK_FALSE(first.writer.commit(order).value().shared);              // it was itself,
  CHECK_FALSE(node(shared, "n0").writer.commit(order).value().shared); // in an earlier life, too
  CHECK(second.writer.commit(order).value().shared);
  CHECK_FALSE(apart.writer.commit(order).value().shared);
}

TEST_CASE("two nodes with a directory each commit the same step in both") {
  memory_place here, there;
  node first(here, "n0"), second(there, "n1");
  const auto w0 = node::snapshot(1, 0, 2), w1 = node::snapshot(1, 1, 2);
  const auto order = node::order(w0, {first.put(w0, "a").value(), second.put(w1, "bb").value()});
  REQUIRE(first.commit(order));
  CHECK(second.commit(order));
  for (auto* place : {&here, &there})
    CHECK(place->files.at("dlrover_latest.txt") == "1");
  auto one = manifest_of(here.files.at("1/troupe-manifest.json")).value();
  const auto other = manifest_of(there.files.at("1/troupe-manifest.json")).value();
  CHECK(one.completed_by == "n0");
  CHECK(other.completed_by == "n1");
  one.completed_by = other.completed_by;
  CHECK(to_text(one) == to_text(other));
}

TEST_CASE("nodes whose own directories have different histories keep what they save together") {
  memory_place fresh, used;
  // The second node's disk holds fifty steps of an earlier job; the first node's is new.
  {
    node before(used, "n1");
    for (std::uint64_t step = 951; step <= 1'000; ++step)
      REQUIRE(before.save(step, "earlier job"));
  }
  node committer(fresh, "n0"), follower(used, "n1");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    auto w0 = node::snapshot(step, 0, 2, generation{2}),
         w1 = node::snapshot(step, 1, 2, generation{2});
    w0.to.keep = w1.to.keep = {1, 0};
    const auto order =
        node::order(w0, {committer.put(w0, "a").value(), follower.put(w1, "b").value()});
    REQUIRE(committer.commit(order));
    REQUIRE(follower.commit(order));
    CHECK(loaded_from(fresh, "n0") == step);
    CHECK(loaded_from(used, "n1") == step);
    CHECK(used.files.at("dlrover_latest.txt") == std::to_string(step));
  }
  CHECK(used.files.count("1000/rank_0.pt") == 0); // one is kept, and it is of the newest save
  CHECK(used.files.count("3/rank_1.pt") == 1);
}

TEST_CASE("retention keeps the step of its commit where a node's directory holds newer ones") {
  memory_place there;
  node n(there, "n1");
  // The node was on the other side of a cut, without a record of that generation.
  REQUIRE(n.save(node::snapshot(40, 0, 1, generation{5}, 40), "of the other side"));
  there.files.erase(".troupe/generations/5");
  auto w = node::snapshot(41, 0, 1, generation{4}, 41);
  w.to.keep = {1, 0};
  REQUIRE(n.save(w, "of this side"));
  CHECK(there.files.count("41/rank_0.pt") == 1);
  CHECK(there.files.count("41/troupe-manifest.json") == 1);
  CHECK(loaded_from(there) == 40); // one order, and it is the newer state
}

TEST_CASE("what was begun again over a complete step and given up goes with its verdict") {
  memory_place place;
  node writes(place), commits(place); // two threads of one saver
  for (const std::uint64_t step : {1, 2}) {
    const auto w = node::snapshot(step);
    REQUIRE(commits.commit(node::order(w, {writes.put(w, "state").value()})));
  }
  const auto again = node::snapshot(1, 0, 2, generation{1}, 3);
  REQUIRE(writes.put(again, "half of it"));
  commits.writer.retain({again.to, {std::nullopt, {generation{1}, 4}}, again.step});
  CHECK(place.files.count(".troupe/steps/1") == 0);
  CHECK(place.files.count("1/rank_0.pt") == 0);
  CHECK(loaded_from(place) == 2);
}
