#include "runtime/sup/supervisor_core.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/random.hpp"
#include "runtime/sup/testing/core_table.hpp"
#include "runtime/sup/testing/core_world.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::sup;

TEST_SUITE("supervisor_core") {
  TEST_CASE("children start first to last and stop last to first, one at a time") {
    table t(strategy::one_for_one, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    CHECK(t.begin() == "start a, start b, start c, up");
    CHECK(t.shutdown() == "stop c");
    CHECK(t.ends("c") == "stop b");
    CHECK(t.ends("b") == "stop a");
    CHECK(t.ends("a") == "end");
  }

  TEST_CASE("a supervisor without children is up at once and ends at once") {
    table t(strategy::one_for_one, three_a_minute, {});
    CHECK(t.begin() == "up");
    CHECK(t.shutdown() == "end");
  }

  TEST_CASE("the next child waits until a supervisor before it is up") {
    table t(strategy::one_for_one, three_a_minute,
            {permanent("a"), nested("group"), permanent("c")});
    CHECK(t.begin() == "start a, start group");
    CHECK(t.comes_up("group") == "start c, up");
  }

  TEST_CASE("one_for_one starts only the child that failed") {
    table t(strategy::one_for_one, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("b") == "start b");
    CHECK(t.core.children().at(t.key("b")).incarnation() == 1);
  }

  TEST_CASE("one_for_all starts no child before all are down") {
    table t(strategy::one_for_all, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("b") == "stop c");
    CHECK(t.ends("c") == "stop a");
    CHECK(t.ends("a") == "start a, start b, start c");
  }

  TEST_CASE("rest_for_one takes along those started later and leaves those before alone") {
    table t(strategy::rest_for_one, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c"), permanent("d")});
    t.begin();
    CHECK(t.fails("b") == "stop d");
    CHECK(t.ends("d") == "stop c");
    CHECK(t.ends("c") == "start b, start c, start d");
  }

  TEST_CASE("a second failure while the first is being repaired widens the repair") {
    table t(strategy::rest_for_one, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("b") == "stop c");
    CHECK(t.fails("a") == "");
    CHECK(t.ends("c") == "start a, start b, start c");
    CHECK(t.left() == 1);
  }

  TEST_CASE("a sibling that fails while it waits to be stopped is not counted as a failure") {
    table t(strategy::one_for_all, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("b") == "stop c");
    CHECK(t.fails("a") == "");
    CHECK(t.fails("c") == "start a, start b, start c");
    CHECK(t.left() == 2);
    CHECK(t.reports.at(4) == "a stopped_badly (bang) while running");
  }

  TEST_CASE("whether a child is restarted depends on its kind and on how it ended") {
    struct row {
      child_options child;
      bool normal;
      std::string effects;
    };
    const row rows[] = {
        {permanent("b"), true, "start b"}, {permanent("b"), false, "start b"},
        {transient("b"), true, ""},        {transient("b"), false, "start b"},
        {temporary("b"), true, ""},        {temporary("b"), false, ""},
    };
    for (const auto& row : rows) {
      CAPTURE(to_string(row.child.when));
      CAPTURE(row.normal);
      table t(strategy::one_for_one, three_a_minute, {permanent("a"), row.child});
      t.begin();
      CHECK((row.normal ? t.ends("b") : t.fails("b")) == row.effects);
    }
  }

  TEST_CASE("a temporary child that dies in one_for_all takes no sibling along") {
    table t(strategy::one_for_all, three_a_minute,
            {permanent("a"), temporary("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("b") == "");
    CHECK(t.left() == 3);
  }

  TEST_CASE("a temporary child taken along by a restart stays down") {
    table t(strategy::one_for_all, three_a_minute,
            {permanent("a"), temporary("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("c") == "stop b");
    CHECK(t.ends("b") == "stop a");
    CHECK(t.ends("a") == "start a, start c");
  }

  TEST_CASE("a transient child that has completed its task is started again with the siblings it "
            "worked for") {
    table t(strategy::one_for_all, three_a_minute, {permanent("a"), transient("b")});
    t.begin();
    CHECK(t.ends("b") == "");
    CHECK(t.fails("a") == "start a, start b");
  }

  TEST_CASE("the restart beyond the budget ends the supervisor, children first") {
    table t(strategy::one_for_one, {2, 60s}, {permanent("a"), permanent("b")});
    t.begin();
    CHECK(t.fails("b") == "start b");
    CHECK(t.fails("b") == "start b");
    CHECK(t.left() == 0);
    CHECK(t.fails("b") == "stop a");
    CHECK(t.reports.back() == "b gave_up (bang) while running");
    CHECK(t.ends("a") == "give up");
    CHECK(t.core.phase() == supervisor_phase::ended);
  }

  TEST_CASE("a budget of nothing gives up at the first failure") {
    table t(strategy::one_for_one, {0, 60s}, {permanent("a")});
    t.begin();
    CHECK(t.fails("a") == "give up");
  }

  TEST_CASE("failures older than the period are forgiven, to the instant") {
    table t(strategy::one_for_one, {1, 10s}, {permanent("a")});
    t.begin();
    CHECK(t.fails("a") == "start a");
    SUBCASE("just after the period") {
      t.now += 10s + 1ns;
      CHECK(t.left() == 1);
      CHECK(t.fails("a") == "start a");
    }
    SUBCASE("at its last instant") {
      t.now += 10s;
      CHECK(t.left() == 0);
      CHECK(t.fails("a") == "give up");
    }
  }

  TEST_CASE("a child that cannot be started at first ends the supervisor, after those before it "
            "have been stopped") {
    table t(strategy::one_for_one, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    t.refuse_to_start = {"b"};
    CHECK(t.begin() == "start a, start b, stop a");
    CHECK(t.ends("a") == "give up");
  }

  TEST_CASE("a supervisor below that ends before it is up has failed to start") {
    table t(strategy::one_for_one, three_a_minute, {permanent("a"), nested("group")});
    CHECK(t.begin() == "start a, start group");
    CHECK(t.fails("group") == "stop a");
    CHECK(t.ends("a") == "give up");
  }

  TEST_CASE("a child that cannot be started again is tried as often as the budget allows") {
    table t(strategy::one_for_one, {2, 60s}, {permanent("a")});
    t.begin();
    t.refuse_to_start = {"a"};
    // One failure of the child and one of its starter are within the budget, the starter's second
    // is not.
    CHECK(t.fails("a") == "start a, start a, give up");
    CHECK(t.reports.back() == "a gave_up (did not start: no port) while running");
  }

  TEST_CASE("a restart that fails in the middle takes along those already started again") {
    table t(strategy::one_for_all, three_a_minute, {permanent("a"), nested("b"), permanent("c")});
    t.begin();
    t.comes_up("b");
    CHECK(t.fails("c") == "stop b");
    CHECK(t.ends("b") == "stop a");
    CHECK(t.ends("a") == "start a, start b");
    CHECK(t.fails("b") == "stop a");
    CHECK(t.ends("a") == "start a, start b");
    CHECK(t.comes_up("b") == "start c");
    CHECK(t.left() == 1);
  }

  TEST_CASE("a child that does not stop in time is killed, and only that incarnation of it") {
    table t(strategy::one_for_all, three_a_minute, {permanent("a"), permanent("b")});
    t.begin();
    CHECK(t.fails("b") == "stop a");
    const event::stop_overdue due{t.key("a"), 0};
    SUBCASE("still there") {
      CHECK(t.tell(due) == "kill a");
      CHECK(t.reports.back() == "a killed (did not end within 5.0 s) while running");
      CHECK(t.fails("a") == "start a, start b");
    }
    SUBCASE("already replaced") {
      CHECK(t.ends("a") == "start a, start b");
      CHECK(t.tell(due) == "");
      CHECK(t.fails("b") == "stop a");
      CHECK(t.tell(due) == "");
    }
  }

  TEST_CASE("a shutdown during a repair starts no child") {
    table t(strategy::one_for_all, three_a_minute,
            {permanent("a"), permanent("b"), permanent("c")});
    t.begin();
    CHECK(t.fails("c") == "stop b");
    CHECK(t.shutdown() == "");
    CHECK(t.ends("b") == "stop a");
    CHECK(t.ends("a") == "end");
  }

  TEST_CASE("a shutdown during the start stops a supervisor that is not up yet") {
    table t(strategy::one_for_one, three_a_minute,
            {permanent("a"), nested("group"), permanent("c")});
    t.begin();
    CHECK(t.shutdown() == "stop group");
    CHECK(t.comes_up("group") == "");
    CHECK(t.ends("group") == "stop a");
    CHECK(t.ends("a") == "end");
  }

  TEST_CASE("dynamic children come and go, and none disturbs another") {
    table t(three_a_minute);
    CHECK(t.begin() == "up");
    CHECK(t.add(temporary("s1")) == "start s1");
    CHECK(t.add(temporary("s2")) == "start s2");
    CHECK(t.fails("s1") == "s1 ended: bang, forget");
    CHECK(t.add(temporary("s1")) == "start s1");
    CHECK(t.remove("s2") == "stop s2");
    CHECK(t.ends("s2") == "s2 ended well, forget");
    CHECK_FALSE(t.core.find("s2"));
    CHECK(t.left() == 3);
  }

  TEST_CASE("dynamic children are stopped all at once") {
    table t(three_a_minute);
    t.begin();
    t.add(temporary("s1"));
    t.add(temporary("s2"));
    CHECK(t.shutdown() == "stop s2, stop s1");
    CHECK(t.ends("s1") == "forget");
    CHECK(t.ends("s2") == "forget, end");
  }

  TEST_CASE("a dynamic child is refused when its id is taken, when it cannot start, and when the "
            "end has begun") {
    table t(three_a_minute);
    t.begin();
    t.add(temporary("s1"));
    CHECK(t.add(temporary("s1")) == "refuse: there is a child called s1");
    t.refuse_to_start = {"s2"};
    CHECK(t.add(temporary("s2")) == "start s2, refuse: no port");
    CHECK(t.shutdown() == "stop s1");
    CHECK(t.add(temporary("s3")) == "refuse: the supervisor is stopping");
    CHECK(t.core.children().size() == 1);
  }

  TEST_CASE("a dynamic supervisor is bounded") {
    table t(three_a_minute);
    t.begin();
    for (std::size_t i = 0; i < limits::children_max; ++i)
      t.add(temporary(std::to_string(i)));
    CHECK(t.add(temporary("one more")) == "refuse: 32768 children already");
  }

  TEST_CASE("an event that cannot be is a broken invariant") {
    table t(strategy::one_for_one, three_a_minute, {permanent("a")});
    t.begin();
    CHECK_THROWS_AS(t.tell(event::down{child_key{7}, true, ""}), const invariant_broken&);
    CHECK_THROWS_AS(t.tell(event::remove{t.key("a")}), const invariant_broken&);
    CHECK_THROWS_AS(
        supervisor_core(strategy::one_for_one, three_a_minute, {permanent("a"), permanent("a")}),
        const invariant_broken&);
  }

  TEST_CASE("whatever happens to the children, the core never does what a supervisor must not") {
    for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
      CAPTURE(seed);
      random_source random(seed);
      core_world world([&random](std::uint64_t bound) { return random.below(bound); });
      for (int i = 0; i < 120; ++i)
        REQUIRE_NOTHROW(world.strike());
      REQUIRE_NOTHROW(world.let_be());
    }
  }
}
