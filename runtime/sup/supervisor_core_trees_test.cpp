#include "runtime/sup/testing/core_table.hpp"

#include <map>

using namespace troupe;
using namespace troupe::sup;

TEST_SUITE("supervisor_core: one fate") {
  const auto three = [] {
    return table(strategy::one_fate, {}, {temporary("a"), temporary("b"), nested("c")});
  };

  TEST_CASE("the supervisor is up when all are") {
    auto t = three();
    CHECK(t.begin() == "start a, start b, start c");
    CHECK(t.comes_up("c") == "up");
  }

  TEST_CASE(
      "the first bad end stops all others at once, with its reason, and ends the supervisor") {
    auto t = three();
    t.begin();
    t.comes_up("c");
    CHECK(t.fails("b") == "stop c (bang), stop a (bang)");
    CHECK(t.fails("a") == "");
    CHECK(t.ends("c") == "give up");
    CHECK(t.reports.at(3) == "b fatal (bang) while running");
  }

  TEST_CASE("it ends well once all have, in whatever order") {
    auto t = three();
    t.begin();
    t.comes_up("c");
    CHECK(t.ends("c") == "");
    CHECK(t.ends("a") == "");
    CHECK(t.ends("b") == "end");
  }

  TEST_CASE(
      "a child that fails before it ends is stopped with its siblings, and that is said once") {
    auto t = three();
    t.begin();
    t.comes_up("c");
    const auto fails_early = [&t] {
      return t.tell(event::failing{t.key("b"), 0, "rank 3 failed"});
    };
    CHECK(fails_early() ==
          "stop c (rank 3 failed), stop b (rank 3 failed), stop a (rank 3 failed)");
    CHECK(fails_early() == "");
    t.ends("b");
    t.ends("a");
    CHECK(t.ends("c") == "give up");
  }

  TEST_CASE("a good end does not undo a bad one") {
    auto t = three();
    t.begin();
    t.comes_up("c");
    CHECK(t.ends("a") == "");
    CHECK(t.fails("b") == "stop c (bang)");
    CHECK(t.ends("c") == "give up");
  }

  TEST_CASE("a child that does not start ends the others") {
    auto t = three();
    t.refuse_to_start = {"b"};
    CHECK(t.begin() == "start a, start b, stop a (b did not start: no port)");
    CHECK(t.ends("a") == "give up");
  }

  TEST_CASE("an order travels down, and a second one reaches those on their way") {
    auto t = three();
    t.begin();
    t.comes_up("c");
    CHECK(t.tell(event::shutdown{{stop_order::cause::asked, "rescale", 15, {}}}) ==
          "stop c (rescale), stop b (rescale), stop a (rescale)");
    t.ends("b");
    CHECK(t.tell(event::shutdown{{stop_order::cause::asked, "now", 9, {}}}) ==
          "hurry a (now), hurry c (now)");
    t.ends("a");
    CHECK(t.ends("c") == "end");
  }
}

TEST_SUITE("supervisor_core: dynamic children that are trees") {
  TEST_CASE("the end of each is told, good or bad, once") {
    table t(three_a_minute);
    t.begin();
    CHECK(t.add({"g1", restart::temporary, std::nullopt}) == "start g1");
    CHECK(t.comes_up("g1") == "");
    CHECK(t.fails("g1") == "g1 ended: bang, forget");
    CHECK(t.add({"g2", restart::temporary, std::nullopt}) == "start g2");
    t.comes_up("g2");
    CHECK(t.ends("g2") == "g2 ended well, forget");
  }

  TEST_CASE("one that ends before it was up had been admitted: its end is told") {
    table t(three_a_minute);
    t.begin();
    t.add({"g1", restart::temporary, std::nullopt});
    CHECK(t.fails("g1") == "g1 ended: did not start: bang, forget");
  }

  TEST_CASE("a restart is counted against a name, each of which has the whole budget") {
    table t(budget{2, for_life});
    t.begin();
    for (const char* g : {"g1", "g2"}) {
      CHECK(t.add(temporary(g), "node-1") == std::string("start ") + g);
      t.fails(g);
    }
    CHECK(t.add(temporary("g3"), "node-1") == "refuse: all 2 restarts of node-1 are used up");
    CHECK(t.add(temporary("g3"), "node-2") == "start g3");
    CHECK(t.core.used_by_name() == std::map<std::string, unsigned>{{"node-1", 2}, {"node-2", 1}});
  }

  TEST_CASE("what is refused is counted against nothing, and leaves no entry") {
    table t(budget{0, for_life});
    t.begin();
    CHECK(t.add(temporary("g1"), "node-1") == "refuse: all 0 restarts of node-1 are used up");
    CHECK(t.core.used_by_name().empty());
  }

  TEST_CASE("what was counted in an earlier life counts") {
    table t(budget{2, for_life});
    t.begin();
    t.tell(event::recall{{{"node-1", 2}}});
    CHECK(t.add(temporary("g3"), "node-1") == "refuse: all 2 restarts of node-1 are used up");
  }
}
