#include "tests/actors/rendezvous_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = rendezvous_core::phase;

namespace {

/// A job of two nodes, a and b, that runs in generation 1.
rendezvous_story two_that_run() {
  rendezvous_story s(2, 2);
  s.comes("a");
  s.comes("b");
  s.gets_ready("a", 1, 4000);
  s.gets_ready("b", 1);
  REQUIRE(s.core.current_phase() == phase::running);
  return s;
}

} // namespace

TEST_SUITE("rendezvous_core: gathering") {
  TEST_CASE("with MIN equal to MAX a world is proposed as soon as all are here") {
    rendezvous_story s(2, 2);
    CHECK(s.comes("a") == "");
    CHECK(s.comes("b") ==
          lines("record GenerationProposed g1", "to a,b: Prepare g1: a(0,1) b(2,3)"));
    CHECK(s.core.current() == generation{1});
  }

  TEST_CASE("between MIN and MAX there is a last call, and whoever hears it takes part") {
    rendezvous_story s(1, 4);
    CHECK(s.comes("a") == "");
    CHECK(s.core.next_wakeup() == dawn + 30s);
    CHECK(s.passes(29s) == "");
    CHECK(s.comes("b") == "");
    CHECK(s.passes(1s) ==
          lines("record GenerationProposed g1", "to a,b: Prepare g1: a(0,1) b(2,3)"));
  }

  TEST_CASE("the last call begins anew when MIN was lost again") {
    rendezvous_story s(2, 4);
    s.comes("a");
    s.comes("b");
    s.passes(29s);
    CHECK(s.is_lost("b") == "");
    s.comes("c");
    CHECK(s.passes(29s) == "");
    CHECK(s.passes(1s).find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("MAX ends the last call") {
    rendezvous_story s(1, 2);
    s.comes("a");
    CHECK(s.comes("b").find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("who is away does not count") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.goes_away("a");
    CHECK(s.comes("b") == "");
    CHECK(s.comes("a").find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("a hello repeated does not count twice") {
    rendezvous_story s(2, 2);
    s.comes("a");
    CHECK(s.comes("a") == "");
  }

  TEST_CASE("spares beyond MAX wait, the first to come take part") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.comes("c") ==
          "to c: StandBy: generation 1 has 2 nodes, the most there can be (--nnodes)");
    CHECK(s.is_lost("b") ==
          lines("to a,b: Stop g1: node b was lost while generation 1 was prepared",
                "record GenerationProposed g2", "to a,c: Prepare g2: a(0,1) c(2,3)"));
  }

  TEST_CASE("too few until the join timeout: the job cannot be formed, and this is said once") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.passes(590s);
    CHECK(s.core.next_wakeup() == dawn + 600s);
    CHECK(s.passes(10s) ==
          "inform recovery: Unformable: only 1 of at least 2 nodes joined within 10 min 0 s");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("the join timeout does not end a last call: enough have joined") {
    rendezvous_story s(1, 4);
    s.passes(590s);
    s.comes("a");
    CHECK(s.passes(10s) == "");
    CHECK(s.passes(20s).find("record GenerationProposed g1") == 0);
  }

  TEST_CASE("who is away has not joined") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.goes_away("a");
    CHECK(s.passes(600s) ==
          "inform recovery: Unformable: only 0 of at least 2 nodes joined within 10 min 0 s");
  }

  TEST_CASE("a node rank that does not exist or is taken is refused for good") {
    rendezvous_story s(3, 3);
    CHECK(s.comes("a", 3) == "expel a: node rank 3 does not exist among 3 nodes (--node-rank)");
    CHECK(s.comes("b", 2) == "");
    CHECK(s.comes("c", 2) == "expel c: node rank 2 is taken by node b (--node-rank)");
    // The refused are forgotten: what membership then says of them means nothing.
    CHECK(s.is_lost("c") == "");
    CHECK(s.comes("d", 0) == "");
    CHECK(s.comes("e").find("record GenerationProposed g1\nto d,e,b: Prepare g1") == 0);
  }

  TEST_CASE("the rank of a node that is away stays taken; of one that is lost it is free") {
    rendezvous_story s(2, 2);
    s.comes("a", 0);
    s.goes_away("a");
    CHECK(s.comes("b", 0) == "expel b: node rank 0 is taken by node a (--node-rank)");
    s.is_lost("a");
    CHECK(s.comes("b", 0) == "");
  }

  TEST_CASE("what comes about an unknown node is nothing") {
    rendezvous_story s(1, 2);
    CHECK(s.goes_away("x") == "");
    CHECK(s.is_lost("x") == "");
    CHECK(s.gets_ready("x", 1) == "");
    CHECK(s.core.in_words() == "gathering: 0 of 2 nodes present");
  }
}

TEST_SUITE("rendezvous_core: preparing") {
  TEST_CASE("sealed when all are ready: recorded, then started, then told to recovery") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.gets_ready("b", 1) == "");
    CHECK(s.core.in_words() == "preparing generation 1: 1 of 2 nodes ready");
    CHECK(s.gets_ready("a", 1, 4000) ==
          lines("record GenerationSealed g1: a(0,1) b(2,3), store a.lan:4000",
                "to a,b: Start g1, store a.lan:4000", "inform recovery: Sealed g1: a(0,1) b(2,3)"));
    CHECK(s.core.in_words() == "generation 1 runs on 2 nodes");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("one answer twice is one answer") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.gets_ready("b", 1) == "");
    CHECK(s.gets_ready("b", 1) == "");
    CHECK(s.core.current_phase() == phase::preparing);
  }

  TEST_CASE("answers to another generation, or of others, do not count") {
    rendezvous_story s(1, 1);
    s.comes("a");
    s.comes("spare");
    CHECK(s.gets_ready("a", 0, 4000) == "");
    CHECK(s.gets_ready("a", 2, 4000) == "");
    CHECK(s.gets_ready("spare", 1, 4000) == "");
    CHECK(s.core.current_phase() == phase::preparing);
  }

  TEST_CASE("a node without a port for the store is given up, to try again as a new one") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.gets_ready("a", 1, 0) ==
          "expel a for now: it has no free port for the store of the training processes");
    CHECK(s.is_lost("a").find("to a,b: Stop g1") == 0);
  }

  TEST_CASE("who does not get ready in time is given up, once") {
    rendezvous_story s(3, 3);
    s.comes("a");
    s.comes("b");
    s.comes("c");
    s.gets_ready("b", 1);
    s.passes(59s);
    CHECK(s.core.next_wakeup() == dawn + 60s);
    CHECK(s.passes(1s) == lines("expel a for now: it did not get ready within 60.0 s",
                                "expel c for now: it did not get ready within 60.0 s"));
    // Membership will tell that they are lost; until then there is nothing more to do.
    CHECK(s.passes(1s) == "");
    CHECK(*s.core.next_wakeup() > s.now);
    CHECK(s.is_lost("a").find("to a,b,c: Stop g1: node a was lost") == 0);
    CHECK(s.is_lost("c") == "");
    CHECK(s.core.current_phase() == phase::gathering);
  }

  TEST_CASE("a member that dies while preparing: the others are stopped and a new number is used") {
    rendezvous_story s(2, 3);
    s.comes("a");
    s.comes("b");
    s.comes("c");
    s.gets_ready("a", 1, 4000);
    CHECK(s.is_lost("c") ==
          lines("to a,b,c: Stop g1: node c was lost while generation 1 was prepared",
                "record GenerationProposed g2", "to a,b: Prepare g2: a(0,1) b(2,3)"));
    // What was answered to generation 1 is not an answer to 2.
    CHECK(s.gets_ready("b", 2) == "");
    CHECK(s.gets_ready("a", 1, 4000) == "");
    CHECK(s.gets_ready("a", 2, 4001).find("record GenerationSealed g2") == 0);
  }

  TEST_CASE("a spare that dies while preparing changes nothing") {
    rendezvous_story s(1, 1);
    s.comes("a");
    s.comes("spare");
    CHECK(s.is_lost("spare") == "");
    CHECK(s.core.current_phase() == phase::preparing);
  }

  TEST_CASE("a member that comes back while preparing is told again, unless it is ready") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    CHECK(s.goes_away("b") == "");
    CHECK(s.comes("b", {}, draining(0)) == "to b: Prepare g1: a(0,1) b(2,3)");
    s.goes_away("a");
    CHECK(s.comes("a", {}, ready_for(1, 4000)) == "");
    s.goes_away("b");
    CHECK(s.comes("b", {}, ready_for(1)).find("record GenerationSealed g1") == 0);
  }

  TEST_CASE("readiness for an older generation is none") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    s.is_lost("b");
    s.comes("c");
    s.goes_away("a");
    CHECK(s.comes("a", {}, ready_for(1, 4000)) == "to a: Prepare g2: a(0,1) c(2,3)");
  }

  TEST_CASE(
      "who is away when the world is sealed is told to recovery, and started when it is back") {
    rendezvous_story s(2, 2);
    s.comes("a");
    s.comes("b");
    s.gets_ready("a", 1, 4000);
    s.goes_away("a");
    CHECK(s.gets_ready("b", 1) ==
          lines("record GenerationSealed g1: a(0,1) b(2,3), store a.lan:4000",
                "to a,b: Start g1, store a.lan:4000", "inform recovery: Sealed g1: a(0,1) b(2,3)",
                "inform recovery: NodeAway a: "));
    CHECK(s.comes("a", {}, ready_for(1, 4000)) ==
          lines("to a: Start g1, store a.lan:4000",
                "inform recovery: NodePresent a ready g1 port 4000"));
  }

  TEST_CASE("a wish to form the next generation comes too early or too late while none runs") {
    rendezvous_story s(1, 1);
    CHECK(s.reforms(0, 1) == "");
    s.comes("a");
    CHECK(s.reforms(1, 1) == "");
    CHECK(s.core.current_phase() == phase::preparing);
  }
}

TEST_SUITE("rendezvous_core: running") {
  TEST_CASE("what happens to members is recovery's business, what happens to spares nobody's") {
    auto s = two_that_run();
    CHECK(s.comes("spare").find("to spare: StandBy") == 0);
    CHECK(s.goes_away("spare") == "");
    CHECK(s.is_lost("spare") == "");
    CHECK(s.goes_away("a") == "inform recovery: NodeAway a: its link broke");
    CHECK(s.goes_away("a") == "");
    CHECK(s.comes("a", {}, running_in(1)) == "inform recovery: NodePresent a running g1");
    CHECK(s.is_lost("b") == "inform recovery: NodeLost b: it burnt down");
    CHECK(s.core.current_phase() == phase::running);
  }

  TEST_CASE("the next generation: all are stopped, ranks are kept, the restart is counted") {
    auto s = two_that_run();
    CHECK(s.reforms(1, 3) == lines("to a,b: Stop g1: once more", "record GenerationProposed g2",
                                   "to a,b: Prepare g2: a(0,1) b(2,3), restart 3"));
  }

  TEST_CASE("a wish for the next generation counts once, and not for another one") {
    auto s = two_that_run();
    CHECK(s.reforms(0, 1) == "");
    CHECK(s.reforms(2, 1) == "");
    CHECK(s.reforms(1, 1) != "");
    CHECK(s.reforms(1, 2) == "");
    CHECK(s.core.current() == generation{2});
  }

  TEST_CASE("below MIN the next generation waits for a replacement, which takes the free ranks") {
    auto s = two_that_run();
    s.is_lost("a");
    CHECK(s.reforms(1, 0) == "to a,b: Stop g1: once more");
    CHECK(s.core.current_phase() == phase::gathering);
    CHECK(s.comes("c") ==
          lines("record GenerationProposed g2, 1 relaunched", "to c,b: Prepare g2: c(0,1) b(2,3)"));
  }

  TEST_CASE("no replacement until the join timeout: the job cannot go on") {
    auto s = two_that_run();
    s.is_lost("a");
    s.reforms(1, 0);
    CHECK(s.passes(600s) ==
          "inform recovery: Unformable: only 1 of at least 2 nodes joined within 10 min 0 s");
  }

  TEST_CASE("after the first generation nobody waits for nodes that were never seen") {
    rendezvous_story s(1, 4);
    s.comes("a");
    s.comes("b");
    s.passes(30s);
    s.gets_ready("a", 1, 4000);
    s.gets_ready("b", 1);
    CHECK(s.reforms(1, 1).find("to a,b: Prepare g2") != std::string::npos);
  }

  TEST_CASE("but for a member that is away the next generation waits, until it is back or lost") {
    for (const bool returns : {true, false}) {
      CAPTURE(returns);
      rendezvous_story s(1, 2);
      s.comes("a");
      s.comes("b");
      s.gets_ready("a", 1, 4000);
      s.gets_ready("b", 1);
      s.goes_away("b");
      CHECK(s.reforms(1, 1) == "to a,b: Stop g1: once more");
      s.passes(2s);
      if (returns)
        CHECK(
            s.comes("b", {}, draining(1)) ==
            lines("record GenerationProposed g2", "to a,b: Prepare g2: a(0,1) b(2,3), restart 1"));
      else
        CHECK(s.is_lost("b") ==
              lines("record GenerationProposed g2", "to a: Prepare g2: a(0,1), restart 1"));
    }
  }

  TEST_CASE("a newcomer takes part from the next generation on") {
    rendezvous_story s(1, 3);
    s.comes("a");
    s.passes(30s);
    s.gets_ready("a", 1, 4000);
    CHECK(s.comes("b") == "");
    CHECK(s.reforms(1, 1).find("to a,b: Prepare g2: a(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("members come before spares, however early the spares were here") {
    rendezvous_story s(1, 2);
    s.comes("spare");
    s.comes("a");
    s.is_lost("spare");
    s.gets_ready("a", 2, 4000);
    s.comes("spare");
    s.comes("late");
    s.reforms(2, 1);
    CHECK(s.core.in_words() == "preparing generation 3: 0 of 2 nodes ready");
    CHECK(s.last.find("to a,spare: Prepare g3") != std::string::npos);
  }

  TEST_CASE("ready long after all were: it is started again, for its Start was lost") {
    auto s = two_that_run();
    s.goes_away("b");
    CHECK(s.comes("b", {}, ready_for(1)).find("to b: Start g1") == 0);
    CHECK(s.comes("b", {}, ready_for(1)).find("to b: Start g1") == 0);
  }
}

TEST_SUITE("rendezvous_core: the end") {
  TEST_CASE("the verdict goes to everyone, also to spares, and to whoever comes later") {
    auto s = two_that_run();
    s.comes("spare");
    s.goes_away("b");
    CHECK(s.concludes(true) ==
          lines("to a,b,spare: Conclude success: because", "announce the end"));
    CHECK(s.concludes(false) == "");
    CHECK(s.comes("b", {}, running_in(1)) == "to b: Conclude success: because");
    CHECK(s.comes("stranger") == "to stranger: Conclude success: because");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.core.in_words() == "concluded");
  }

  TEST_CASE("after the verdict nothing is formed any more") {
    auto s = two_that_run();
    s.concludes(false);
    CHECK(s.reforms(1, 1) == "");
    CHECK(s.gets_ready("a", 1, 4000) == "");
    CHECK(s.is_lost("a") == "");
    CHECK(s.goes_away("b") == "");
    CHECK(s.passes(1h) == "");
    CHECK(s.core.current_phase() == phase::concluded);
  }

  TEST_CASE("a verdict ends gathering and preparing as well") {
    rendezvous_story s(2, 2);
    s.comes("a");
    CHECK(s.concludes(false) == lines("to a: Conclude failure: because", "announce the end"));
    rendezvous_story t(1, 1);
    t.comes("a");
    CHECK(t.concludes(false) == lines("to a: Conclude failure: because", "announce the end"));
    CHECK(t.gets_ready("a", 1, 4000) == "");
  }
}

TEST_SUITE("rendezvous_core: what people read") {
  TEST_CASE(
      "a wait for nodes is told now and again, with what is missing and how long it may last") {
    rendezvous_story s(2, 2);
    s.comes("a");
    CHECK(s.core.next_wakeup() == dawn + 10s);
    s.now = dawn + 10s;
    CHECK(notes(s.core.tick(s.now)) ==
          "1 of 2 nodes are here after 10.0 s; giving up in 9 min 50 s");
    CHECK(notes(s.core.tick(s.now)) == "");
    CHECK(s.core.next_wakeup() == dawn + 30s);
  }

  TEST_CASE("enough nodes, but not all: when it will start") {
    rendezvous_story s(2, 3);
    s.comes("a");
    CHECK(notes(s.core.node_present(s.now, present("b"))) ==
          lines("node b is here (2 of 3)",
                "2 of at most 3 nodes are here, which is enough: starting in 30.0 s unless the "
                "others come first"));
    CHECK(s.core.next_wakeup() == dawn + 30s);
  }

  TEST_CASE("a wait for members to get ready names them, up to a handful") {
    rendezvous_story s(7, 7);
    for (const char* node : {"a", "b", "c", "d", "e", "f", "g"})
      s.comes(node);
    s.gets_ready("b", 1);
    s.now += 10s;
    CHECK(notes(s.core.tick(s.now)) ==
          "generation 1 waits for a, c, d, e and 2 more to get ready, for 10.0 s now");
  }

  TEST_CASE("which node has which ranks") {
    const auto sealed_with = [](const std::vector<node_name>& nodes) {
      const auto n = static_cast<std::uint32_t>(nodes.size());
      rendezvous_story s(n, n);
      for (const auto& node : nodes)
        s.comes(node);
      for (const auto& node : nodes)
        if (node != "a")
          s.gets_ready(node, 1);
      return notes(s.core.prepared(s.now, prepared("a", 1, 4000)));
    };
    CHECK(sealed_with({"a"}) == "generation 1 is sealed: 2 workers on node a (prepared in 0 µs)");
    CHECK(sealed_with({"a", "b"}) ==
          "generation 1 is sealed: 4 workers on a (ranks 0–1), b (2–3) (prepared in 0 µs)");
    CHECK(sealed_with({"a", "b", "c", "d", "e"}) ==
          "generation 1 is sealed: 10 workers on 5 nodes (prepared in 0 µs)");
  }
}
