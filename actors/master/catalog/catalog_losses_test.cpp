#include "actors/limits.hpp"
#include "actors/master/catalog/catalog_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

const saving of_four{100, 1, 4}; // a has ranks 0 and 1, b has 2 and 3

struct story {
  std::string wrote(const node_name& node, std::uint32_t shard, const saving& s = of_four) {
    return text(core.shard_reported(now, shard_written(node, shard, s)));
  }
  std::string completed(const node_name& node, bool complete, const saving& s = of_four) {
    return text(core.step_committed(now, step_committed(node, complete, s)));
  }
  /// It has found another node's manifest in its directory.
  std::string finds_completed(const node_name& node) {
    return text(core.step_committed(now, step_committed(node, true, of_four, true)));
  }
  /// All four shards are there; a is asked to complete the step.
  void gathers(const saving& s = of_four) {
    for (const std::uint32_t shard : {0, 1})
      wrote("a", shard, s);
    for (const std::uint32_t shard : {2, 3})
      wrote("b", shard, s);
  }
  std::string loses(const node_name& node) { return text(core.node_lost(now, lost(node))); }
  std::string waits(duration d) {
    now += d;
    return text(core.tick(now));
  }

  explicit story(const std::vector<node_name>& world = {"a", "b"}) {
    core.sealed(sealed(1, world));
  }

  catalog_core core{messages::author("master/catalog")};
  instant now = dawn;
};

constexpr duration grace = limits::lost_writer_within;
const std::string b_was_lost = "step 100 is complete on node a, and not known to be so in the "
                               "directory of node b, which was lost before";

} // namespace

TEST_SUITE("catalog_core: nodes that are lost") {
  TEST_CASE("a step that only a lost node could go on with is given up soon") {
    story s;
    s.wrote("a", 0);
    s.wrote("a", 1);
    s.wrote("b", 2);
    CHECK(s.core.next_wakeup() == dawn + 600s);
    CHECK(s.loses("b") == "");
    CHECK(s.waits(grace - 1ms) == "");
    CHECK(s.waits(1ms) == "to a,b: StepFinalized g1 step 100 not: shard 3 of 4 of step 100 was not "
                          "written before node b was lost");
  }

  TEST_CASE("also when it was lost before the others had written") {
    story s;
    s.loses("b");
    s.wrote("a", 0);
    CHECK(s.core.next_wakeup() == dawn + grace);
  }

  TEST_CASE("nodes that are still there have all their time") {
    story s({"a", "b", "c"});
    const saving of_six{100, 1, 6};
    for (const std::uint32_t shard : {2, 3})
      s.wrote("b", shard, of_six);
    s.wrote("a", 0, of_six);
    s.loses("b");
    CHECK(s.core.next_wakeup() == dawn + 600s);
  }

  TEST_CASE("a node that is back in time goes on writing") {
    story s;
    s.wrote("a", 0);
    s.wrote("a", 1);
    s.wrote("b", 2);
    s.loses("b");
    s.waits(5s);
    CHECK(s.wrote("b", 2) == "");
    CHECK(s.waits(grace) == "");
    CHECK(s.wrote("b", 3).find("to a: CommitStep g1 step 100") == 0);
  }

  TEST_CASE("where it is not known which ranks save, all have their time") {
    story s;
    const saving of_two{100, 1, 2};
    s.core.shard_reported(s.now, shard_written("a", 0, of_two));
    s.loses("b");
    s.waits(grace);
    CHECK(s.core.in_words() == "1 step being saved, the newest 100");
  }

  TEST_CASE("a committer that is lost is replaced at once") {
    story s;
    for (const std::uint32_t shard : {0, 1})
      s.wrote("a", shard);
    s.wrote("b", 2);
    REQUIRE(s.wrote("b", 3).find("to a: CommitStep") == 0);
    CHECK(s.loses("a").find("to b: CommitStep") == 0);
    CHECK(s.loses("b") == "");
    CHECK(s.waits(grace - 1ms) == "");
    CHECK(s.waits(1ms) == "to a,b: StepFinalized g1 step 100 not: step 100 is written, and whether "
                          "it is complete is not known: 2 nodes that could complete it were lost");
  }

  TEST_CASE("of two that were asked the one that is not lost has the whole time") {
    story s;
    for (const std::uint32_t shard : {0, 1})
      s.wrote("a", shard);
    s.wrote("b", 2);
    s.wrote("b", 3);
    REQUIRE(s.waits(limits::commit_within).find("to b: CommitStep") == 0); // a is slow
    CHECK(s.loses("b") == "");
    CHECK(s.waits(grace) == "");
    CHECK(s.core.next_wakeup() == dawn + 600s);
    CHECK(s.loses("a") == "");
    CHECK(s.waits(grace).find("2 nodes that could complete it were lost") != std::string::npos);
  }

  TEST_CASE("a follower that is lost with a directory of its own: not complete") {
    story s;
    s.gathers();
    REQUIRE(s.completed("a", true).find("to b: CommitStep") == 0);
    CHECK(s.loses("b") == "");
    CHECK(s.waits(grace - 1ms) == "");
    CHECK(s.waits(1ms) == "to a,b: StepFinalized g1 step 100 not: " + b_was_lost);
  }

  TEST_CASE("nor is one waited for that was lost before any node had completed the step") {
    story s;
    s.gathers();
    s.loses("b");
    s.completed("a", true);
    CHECK(s.waits(grace) == "to a,b: StepFinalized g1 step 100 not: " + b_was_lost);
  }

  TEST_CASE("a follower that is back in time completes it") {
    story s;
    s.gathers();
    s.completed("a", true);
    s.loses("b");
    CHECK(s.wrote("b", 3).find("to b: CommitStep g1 step 100, complete elsewhere") == 0);
    CHECK(s.completed("b", true) == "to a,b: StepFinalized g1 step 100 complete");
  }

  TEST_CASE("in one directory of all nodes a lost follower holds no node back: it is complete") {
    story s;
    s.gathers();
    s.completed("a", true);
    s.finds_completed("b");
    const saving next{101, 1, 4};
    s.gathers(next);
    s.completed("a", true, next);
    s.loses("b");
    CHECK(s.waits(grace) == "to a,b: StepFinalized g1 step 101 complete");
  }

  TEST_CASE("another place may be each node's own") {
    story s;
    s.gathers();
    s.completed("a", true);
    s.finds_completed("b");
    const saving elsewhere{100, 1, 4, 0, "/local"};
    s.gathers(elsewhere);
    s.completed("a", true, elsewhere);
    s.loses("b");
    CHECK(s.waits(grace) == "to a,b: StepFinalized g1 step 100 not: " + b_was_lost);
  }

  TEST_CASE("a name that is in the newest world is not lost any more") {
    story s;
    s.loses("b");
    s.core.sealed(sealed(2, {"a", "b"}));
    s.wrote("a", 0, {100, 2, 4});
    CHECK(s.core.next_wakeup() == dawn + 600s);
  }
}
