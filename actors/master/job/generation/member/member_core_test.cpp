#include "actors/master/job/generation/member/member_core.hpp"

#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = member_core::phase;

namespace {

const sup::stop_order sibling{sup::stop_order::cause::sibling, "rank 3 failed", 0, {}};
const sup::stop_order asked{sup::stop_order::cause::asked, "1 more node is here", 0, {}};
const sup::stop_order shutdown{};
const sup::stop_order verdict{sup::stop_order::cause::asked, "over", verdict_follows, {}};

const std::string started =
    lines("to node: Start g2, store a.lan:29400", "to node: RankOwners g2 of 2 nodes");

/// Node b's part in generation 2 of a and b.
struct story {
  explicit story(bool sealed_before = false)
      : core({"b", incarnation{1}, 60s, 15s, 1},
             {proposed(2, {"a", "b"}), owners(2, {"a", "b"}),
              sealed_before ? std::optional(start(2)) : std::nullopt},
             messages::author("member"), dawn) {
    begun = text(core.begin());
  }

  std::string comes(const doing& d) { return text(core.present(now, present("b", d))); }
  std::string comes_as(incarnation which, const doing& d) {
    return text(
        core.present(now, present("b", d, [which](auto b) { b.setIncarnation(which.value); })));
  }
  std::string is_lost() { return text(core.lost(lost("b"))); }
  std::string gets_ready(std::uint64_t g = 2) { return text(core.prepared(prepared("b", g))); }
  std::string is_started() { return text(core.start(start(2))); }
  std::string fails(std::uint64_t g = 2) { return text(core.failed(failed("b", g))); }
  std::string finishes() { return text(core.finished(finished("b", 2))); }
  std::string has_stopped(std::uint64_t g = 2) { return text(core.stopped(stopped("b", g))); }
  std::string is_told(const sup::stop_order& o) { return text(core.ordered(now, o)); }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }

  member_core core;
  instant now = dawn;
  std::string begun;
};

story that_runs() {
  story s;
  s.gets_ready();
  s.is_started();
  REQUIRE(s.core.current_phase() == phase::running);
  return s;
}

const std::string why_failed = "rank 0 (node b, local rank 0, pid 100) failed: exit code 1";

} // namespace

TEST_SUITE("member_core: from Prepare to Start") {
  TEST_CASE("the node prepares, says so, and is started when all have") {
    story s;
    CHECK(s.begun == "to node: Prepare g2: b(2,3) of 4 on 2 nodes");
    CHECK(s.gets_ready() == "to rendezvous: Prepared g2 b");
    CHECK(s.core.in_words() == "node b is ready for generation 2");
    CHECK(s.is_started() == started);
    CHECK(s.is_started() == "");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("an answer to another generation is none") {
    story s;
    CHECK(s.gets_ready(1) == "");
    CHECK(s.gets_ready(3) == "");
    CHECK(s.core.current_phase() == phase::preparing);
  }

  TEST_CASE("a new link is told again, unless the node says that it is ready") {
    story s;
    CHECK(s.comes(draining(1)) == "to node: Prepare g2: b(2,3) of 4 on 2 nodes");
    CHECK(s.comes(ready_for(1)) == "to node: Prepare g2: b(2,3) of 4 on 2 nodes");
    CHECK(s.comes(ready_for(2)) == "to rendezvous: Prepared g2 b");
    CHECK(s.comes(ready_for(2)) == "to rendezvous: Prepared g2 b");
  }

  TEST_CASE("a node that lost what it had prepared fails the generation: its store is gone") {
    story s;
    s.gets_ready();
    CHECK(s.comes(nothing()) == "fails: node b lost what it had prepared");
    CHECK(s.comes(nothing()) == "");
  }

  TEST_CASE("a node that does not get ready in time is evicted, and asked for again and again") {
    story s;
    CHECK(s.core.next_wakeup() == dawn + 60s);
    CHECK(s.passes(60s - 1ns) == "");
    CHECK(s.passes(1ns) == "evict: it did not get ready within 60.0 s");
    CHECK(s.passes(1s) == "");
    CHECK(s.passes(59s) == "evict: it did not get ready within 60.0 s");
    CHECK(s.is_lost() == "ends: node b is lost: it burnt down");
  }
}

TEST_SUITE("member_core: a generation that runs") {
  TEST_CASE("what the node says goes to the planner; a failure ends the generation at once") {
    auto s = that_runs();
    CHECK(text(s.core.running(running("b", 2))) == "to planner: Running g2 b");
    CHECK(s.fails() == lines("to planner: Failed g2 b [b/0: exit code 1]", "fails: " + why_failed));
    CHECK(s.fails() == "to planner: Failed g2 b [b/0: exit code 1]");
    CHECK(s.fails(1) == "");
  }

  TEST_CASE("it ends when its node is clean, however long its siblings take") {
    auto s = that_runs();
    s.fails();
    SUBCASE("after the order") {
      CHECK(s.is_told(sibling) == "to node: Stop g2: rank 3 failed");
      CHECK(s.has_stopped(1) == "");
      CHECK(s.has_stopped() == lines("to planner: Stopped g2 b", "ends"));
    }
    SUBCASE("before it") {
      CHECK(s.has_stopped() == "to planner: Stopped g2 b");
      CHECK(s.is_told(sibling) == "ends");
    }
    CHECK(s.core.current_phase() == phase::ended);
    CHECK(s.is_lost() == "");
  }

  TEST_CASE("what becomes of workers that are asked to end is the planner's to know") {
    auto s = that_runs();
    CHECK(text(s.core.end_answer(end_answer("b", 2, true))) == "to planner: EndAnswer g2 b: begun");
    CHECK(text(s.core.end_answer(end_answer("b", 1, true))) == "");
    CHECK(text(s.core.finished(finished("b", 2, true))) ==
          lines("to planner: Finished g2 b, asked to", "ends"));
  }

  TEST_CASE("that they had been asked is said by the hello as well") {
    auto s = that_runs();
    CHECK(text(s.core.present(s.now, present("b", finished_in(2), [](auto b) {
                                b.getState().setAsked(true);
                              }))) == lines("to planner: Finished g2 b, asked to", "ends"));
  }

  TEST_CASE("a node that has finished is done, whatever becomes of it") {
    auto s = that_runs();
    CHECK(s.finishes() == lines("to planner: Finished g2 b", "ends"));
    CHECK(s.is_told(sibling) == "");
    CHECK(s.comes(nothing()) == "");
  }

  TEST_CASE("a lost node ends its member badly") {
    auto s = that_runs();
    CHECK(s.is_lost() == "ends: node b is lost: it burnt down");
  }

  TEST_CASE("a node whose name another one has fails the generation, which waits for its end") {
    auto s = that_runs();
    CHECK(text(s.core.replaced("taken")) == "fails: node b is lost: taken");
    CHECK(text(s.core.replaced("taken")) == "");
    s.is_told(sibling);
    s.has_stopped();
    s.is_told(sibling);
    CHECK(s.core.current_phase() == phase::stopping);
    CHECK(s.is_lost() == "ends");
  }

  TEST_CASE("a node that ends its processes unasked fails the generation") {
    auto s = that_runs();
    CHECK(s.has_stopped() ==
          lines("to planner: Stopped g2 b", "fails: node b has ended generation 2 by itself"));
    CHECK(s.is_told(sibling) == "ends");
  }

  TEST_CASE("on a new link the node's state is compared with what it was told") {
    auto s = that_runs();
    CHECK(s.comes(ready_for(2)) == started);
    CHECK(s.comes(running_in(2)) ==
          lines("to node: RankOwners g2 of 2 nodes", "to planner: Running g2 b"));
    SUBCASE("it failed meanwhile") {
      CHECK(s.comes(failed_in(2, {3})) ==
            lines("to planner: Failed g2 b [b/0: exit code 3]",
                  "fails: rank 0 (node b, local rank 0, pid 100) failed: exit code 3"));
    }
    SUBCASE("it finished meanwhile") {
      CHECK(s.comes(finished_in(2)) == lines("to planner: Finished g2 b", "ends"));
    }
    SUBCASE("it is further than the journal, which has lost its tail: no worker has failed") {
      CHECK(s.comes(running_in(3)) ==
            "fails: node b is in generation 3 already, which the journal of this master does not "
            "have");
      CHECK(s.is_told(sibling) == "to node: Stop g2: rank 3 failed");
    }
    SUBCASE("its supervisor lost its workers") {
      CHECK(s.comes(nothing()) ==
            lines("to planner: Failed g2 b [b: the node supervisor lost its workers]",
                  "fails: node b: the node supervisor lost its workers"));
    }
    SUBCASE("an earlier master told it to end") {
      CHECK(s.comes(draining(2)) == "fails: node b has ended generation 2 already");
      CHECK(s.comes(idle_after(2)) == "");
    }
  }
}

TEST_SUITE("member_core: orders to stop") {
  TEST_CASE("the node is told, again on each new link, and waited for") {
    auto s = that_runs();
    CHECK(s.is_told(asked) == "to node: Stop g2: 1 more node is here");
    CHECK(s.comes(running_in(2)) == "to node: Stop g2: 1 more node is here");
    CHECK(s.core.in_words() == "node b ends generation 2: 1 more node is here");
    CHECK(s.has_stopped() == lines("to planner: Stopped g2 b", "ends"));
  }

  TEST_CASE("one that does not obey in time is evicted") {
    auto s = that_runs();
    s.now += 1h;
    s.is_told(asked);
    CHECK(s.core.next_wakeup() == s.now + 60s);
    CHECK(s.passes(60s) == "evict: it did not end its processes within 60.0 s");
    CHECK(s.is_lost() == "ends: node b is lost: it burnt down");
  }

  TEST_CASE("one that only prepares is stopped as well") {
    story s;
    CHECK(s.is_told(sibling) == "to node: Stop g2: rank 3 failed");
    CHECK(s.gets_ready() == "");
    CHECK(s.has_stopped() == lines("to planner: Stopped g2 b", "ends"));
  }

  TEST_CASE("a shutdown of the master's tree does not reach the node") {
    auto s = that_runs();
    CHECK(s.is_told(shutdown) == "ends");
  }

  TEST_CASE("a verdict takes the place of Stop") {
    auto s = that_runs();
    CHECK(s.is_told(verdict) == "ends");
    auto t = that_runs();
    t.is_told(asked);
    CHECK(t.is_told(verdict) == "ends");
  }
}

TEST_SUITE("member_core: sealed by an earlier master") {
  TEST_CASE("the node is waited for, and its state says where it is") {
    story s(true);
    CHECK(s.begun == "");
    CHECK(s.core.in_words() == "waits for node b to come back with generation 2");
    CHECK(s.comes(running_in(2)) ==
          lines("to node: RankOwners g2 of 2 nodes", "to planner: Running g2 b"));
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.fails() != "");
  }

  TEST_CASE("a Start that got lost with the old master is repeated") {
    story s(true);
    CHECK(s.comes(ready_for(2)) == started);
  }

  TEST_CASE("one that does not come back in time is lost") {
    story s(true);
    CHECK(s.core.next_wakeup() == dawn + 15s);
    CHECK(s.passes(15s) == "ends: node b did not come back to the restarted master");
  }

  TEST_CASE("one that comes back when the generation is over is stopped") {
    story s(true);
    CHECK(s.is_told(sibling) == "to node: Stop g2: rank 3 failed");
    SUBCASE("in time") {
      s.now += 14s;
      CHECK(s.comes(running_in(2)) == "to node: Stop g2: rank 3 failed");
      CHECK(s.core.next_wakeup() == s.now + 60s);
      CHECK(s.has_stopped() == lines("to planner: Stopped g2 b", "ends"));
    }
    SUBCASE("but it is waited for no longer than before") {
      CHECK(s.core.next_wakeup() == dawn + 15s);
      CHECK(s.passes(15s) == "ends: node b did not come back to the restarted master");
    }
  }

  TEST_CASE("another supervisor under the node's name has none of its processes: it is lost") {
    for (const bool sealed_before : {false, true}) {
      story s(sealed_before);
      CHECK(s.comes_as(incarnation{2}, nothing()) ==
            "ends: node b is lost: a newer node supervisor of this name is here");
      CHECK(s.core.current_phase() == phase::ended);
    }
    // A journal of before does not say which one it was.
    story old(false);
    old.core = member_core({"b", {}, 60s, 15s, 1},
                           {proposed(2, {"a", "b"}), owners(2, {"a", "b"}), start(2)},
                           messages::author("member"), dawn);
    CHECK(old.comes_as(incarnation{2}, running_in(2)).find("to planner: Running") !=
          std::string::npos);
  }
}
