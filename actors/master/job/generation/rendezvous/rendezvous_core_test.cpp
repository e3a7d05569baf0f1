#include "actors/master/job/generation/rendezvous/rendezvous_core.hpp"

#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

struct story {
  explicit story(const std::vector<node_name>& nodes)
      : core(proposed(1, nodes), messages::author("rendezvous"), dawn) {}

  std::string gets_ready(const node_name& node, std::uint64_t g = 1, std::uint16_t store_port = 0) {
    const auto effects = core.prepared(now, prepared(node, g, store_port));
    said = notes(effects);
    return text(effects);
  }

  rendezvous_core core;
  instant now = dawn;
  std::string said;
};

} // namespace

TEST_SUITE("rendezvous_core") {
  TEST_CASE("sealed when all are ready: recorded, then started, then told to the planner") {
    story s({"a", "b"});
    CHECK(s.gets_ready("b") == "");
    CHECK(s.core.in_words() == "preparing generation 1: 1 of 2 nodes ready");
    CHECK(s.gets_ready("b") == "");
    CHECK(s.gets_ready("a", 1, 4000) ==
          lines("record GenerationSealed g1: a(0,1) b(2,3), store a.lan:4000",
                "to all: Start g1, store a.lan:4000", "to planner: Sealed g1: a(0,1) b(2,3)",
                "done"));
    CHECK(s.gets_ready("a", 1, 4000) == "");
    CHECK(s.core.in_words() == "generation 1 is sealed");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("answers to another generation, or of a node that is no member, do not count") {
    story s({"a"});
    CHECK(s.gets_ready("a", 0, 4000) == "");
    CHECK(s.gets_ready("a", 2, 4000) == "");
    CHECK(s.gets_ready("standby", 1, 4000) == "");
    CHECK(s.gets_ready("a", 1, 4000) != "");
  }

  TEST_CASE("a first node without a port for the store is evicted; another's port means nothing") {
    story s({"a", "b"});
    CHECK(s.gets_ready("a", 1, 0) == "evict a: the store of the training processes cannot be "
                                     "opened on it; its own log says why");
    CHECK(s.gets_ready("b", 1, 5000) == "");
    CHECK(s.gets_ready("a", 1, 4000).find("store a.lan:4000") != std::string::npos);
  }

  TEST_CASE("the newest store of the first node counts") {
    story s({"a", "b"});
    s.gets_ready("a", 1, 4000);
    s.gets_ready("a", 1, 4001);
    CHECK(s.gets_ready("b").find("store a.lan:4001") != std::string::npos);
  }

  TEST_CASE("a long wait names the nodes that are not ready, up to a handful") {
    story s({"a", "b", "c", "d", "e", "f", "g"});
    s.gets_ready("b");
    CHECK(s.core.next_wakeup() == dawn + 10s);
    CHECK(notes(s.core.tick(dawn + 10s)) ==
          "generation 1 waits for a, c, d, e and 2 more to get ready, for 10.0 s now");
    CHECK(notes(s.core.tick(dawn + 10s)) == "");
  }

  TEST_CASE("which node has which ranks") {
    const auto sealed_with = [](const std::vector<node_name>& nodes) {
      story s(nodes);
      for (const auto& node : nodes)
        s.gets_ready(node, 1, 4000);
      return s.said;
    };
    CHECK(sealed_with({"a"}) ==
          "generation 1 starts: 2 workers on node a (its nodes were ready after 0 µs)");
    CHECK(sealed_with({"a", "b"}) == "generation 1 starts: 4 workers on a (ranks 0–1), b (2–3) "
                                     "(its nodes were ready after 0 µs)");
    CHECK(sealed_with({"a", "b", "c", "d", "e"}) ==
          "generation 1 starts: 10 workers on 5 nodes (its nodes were ready after 0 µs)");
  }
}
