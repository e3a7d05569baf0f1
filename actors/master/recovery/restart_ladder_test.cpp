#include "actors/master/recovery/restart_ladder.hpp"

#include "actors/limits.hpp"
#include "messages/msg.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::actors;

using rung = restart_ladder::rung;

namespace {

restart_ladder::options each(std::uint32_t restarts) {
  restart_ladder::options o;
  o.of_each_node = restarts;
  o.progress_after = 60s;
  return o;
}

restart_ladder::options replaced(std::uint32_t restarts) {
  auto o = each(restarts);
  o.cluster_replaces = true;
  return o;
}

/// Failures of the program, one after the other.
struct climb {
  explicit climb(restart_ladder::options o) : ladder(std::move(o)) {}

  restart_ladder::step fails(const node_name& node, duration worked = 1h,
                             const std::string& message = "no such file") {
    now += 1h;
    failure_ledger::failure f;
    f.node = node;
    f.message = message;
    f.judged.which = which;
    return ladder.failed(now, f, worked, spare, node);
  }

  restart_ladder ladder;
  bool spare = false;
  exit_class which = exit_class::SOFTWARE;
  instant now{};
};

messages::msg<messages::RestartCounted> recorded(const restart_ladder& l, const node_name& node,
                                                 const restart_ladder::step& taken) {
  return messages::local<messages::RestartCounted>("test", [&](auto b) {
    l.write(b, node, taken);
    auto f = b.initFailures(1)[0];
    f.setMessage("no such file");
    f.setExitClass(exit_class::SOFTWARE);
  });
}

} // namespace

TEST_SUITE("restart_ladder") {
  TEST_CASE("the same nodes as often as the node may, then the end") {
    climb c(each(2));
    CHECK(c.fails("a").is == rung::restart);
    CHECK(c.fails("a").is == rung::restart);
    CHECK(c.fails("b").is == rung::restart);
    const auto last = c.fails("a");
    CHECK(last.is == rung::end);
    CHECK(last.why == "all 2 restarts of node a are used up (--max-restarts)");
    CHECK(c.ladder.count() == 3);
  }

  TEST_CASE("a cluster that gives another machine is asked, as often as it gives one") {
    climb c(replaced(1));
    for (const char* node : {"a", "b", "c", "d"}) {
      CHECK(c.fails(node).is == rung::restart);
      const auto next = c.fails(node);
      CHECK(next.is == rung::replace);
      CHECK(next.why ==
            std::string("the only restart of node ") + node + " is used up (--max-restarts)");
    }
    CHECK(c.ladder.count() == 8);
  }

  TEST_CASE("without one a spare node takes the place, and once for one failure") {
    climb none(each(0));
    none.spare = true;
    CHECK(none.fails("a").is == rung::end); // as under torchrun
    climb c(each(1));
    c.spare = true;
    for (const char* node : {"a", "b"})
      CHECK(c.fails(node).is == rung::restart);
    CHECK(c.fails("a").is == rung::replace);
    SUBCASE("the same failure at another machine is the program's") {
      CHECK(c.fails("b").is == rung::end);
    }
    SUBCASE("another one is not") {
      CHECK(c.fails("b", 1h, "disk full").is == rung::replace);
    }
  }

  TEST_CASE("at the start the machine may be to blame, until another one has it too") {
    climb c(replaced(1));
    CHECK(c.fails("a", 1s).is == rung::restart);
    CHECK(c.fails("a", 1s).is == rung::replace);
    SUBCASE("another machine does not help") {
      const auto next = c.fails("b", 1s);
      CHECK(next.is == rung::end);
      CHECK(next.why == "the last 3 generations have failed in this way within 10.0 s of their "
                        "start, on whatever node: the next would, too (--max-restarts 1)");
    }
    SUBCASE("it works for a while") {
      CHECK(c.fails("b").is == rung::restart);
    }
    SUBCASE("it fails otherwise") {
      CHECK(c.fails("b", 1s, "no memory").is == rung::restart);
    }
  }

  TEST_CASE("the budget of the whole job is above all rungs") {
    for (const bool replaces : {false, true}) {
      auto o = replaces ? replaced(9) : each(9);
      o.of_job = 2;
      climb c(o);
      CHECK(c.fails("a").is == rung::restart);
      CHECK(c.fails("b").is == rung::restart);
      const auto last = c.fails("c");
      CHECK(last.is == rung::end);
      CHECK(last.why == "2 restarts of the job are used up (--job-restarts)");
    }
  }

  TEST_CASE("want of progress has an exit code of its own, whatever budget is used up as well") {
    auto o = each(1);
    o.without_progress_max = 2;
    climb c(o);
    CHECK(c.fails("a", 59s).exit_code == 0);
    const auto last = c.fails("a", 59s);
    CHECK(last.is == rung::end);
    CHECK(last.exit_code == limits::exit_no_progress);
    climb works(o);
    works.fails("a", 59s);
    CHECK(works.fails("a", 60s).exit_code == 0);
  }

  TEST_CASE(
      "nodes are waited for within the budget of relaunches, and while the cluster gives any") {
    auto o = replaced(3);
    o.relaunches_max = 2;
    restart_ladder l(o);
    CHECK_FALSE(l.wait_for(1));
    CHECK_FALSE(l.wait_for(2));
    CHECK(l.take_waited() == 2);
    CHECK(l.take_waited() == 0);
    CHECK(*l.wait_for(1) == "2 of 2 relaunches are used up (--node-relaunches)");
    CHECK_FALSE(l.no_more(4, 4));
    l.supplied({4, 4, "", "restartCounts 3"});
    CHECK_FALSE(l.no_more(4, 4));
    l.supplied({4, 3, "rank 2 gets no further pod", "restartCounts 3"});
    CHECK_FALSE(l.no_more(3, 4));
    CHECK(*l.no_more(4, 4) == "rank 2 gets no further pod");
    CHECK_FALSE(l.no_more(4, 5)); // the job has been scaled, and the cluster has not answered yet
    l.supplied({4, 4, "", "restartCounts 3"});
    CHECK_FALSE(l.no_more(4, 4));
  }

  TEST_CASE("a later master goes on from the rungs that were used") {
    climb c(each(2));
    c.fails("a", 1s);
    const auto second = c.fails("b", 1s);
    climb later(each(2));
    later.ladder.recall(*recorded(c.ladder, "b", second).read());
    CHECK(later.ladder.count() == 2);
    CHECK(later.ladder.used("b") == 1);
    CHECK(later.fails("a", 1s).is == rung::end);
  }

  TEST_CASE("one bad node is one node for a later master, too") {
    climb c(replaced(3));
    restart_ladder::step last;
    for (int i = 0; i < 3; ++i)
      last = c.fails("a", 1s);
    climb later(replaced(3));
    later.ladder.recall(*recorded(c.ladder, "a", last).read());
    CHECK(later.fails("a", 1s).is == rung::replace);
  }

  TEST_CASE("a machine that has the name of the one that left has used up nothing, nor later") {
    climb c(replaced(1));
    c.fails("worker-0");
    const auto left = c.fails("worker-0");
    CHECK(left.is == rung::replace);
    CHECK(left.used == 2);
    climb later(replaced(1));
    later.ladder.recall(*recorded(c.ladder, "worker-0", left).read());
    for (auto* each : {&c, &later}) {
      CHECK(each->ladder.used("worker-0") == 0);
      CHECK(each->ladder.count() == 2);
      CHECK(each->fails("worker-0").is == rung::restart);
    }
  }

  TEST_CASE(
      "without a cluster a name has one budget for life, and one class of ends is one failure") {
    climb c(each(1));
    c.spare = true;
    c.which = exit_class::OUT_OF_MEMORY;
    for (const char* node : {"a", "b"})
      CHECK(c.fails(node).is == rung::restart);
    const auto left = c.fails("a");
    CHECK(left.is == rung::replace);
    CHECK(c.fails("b").is == rung::end);
    climb later(each(1));
    later.ladder.recall(*recorded(c.ladder, "a", left).read());
    CHECK(later.fails("a").is == rung::end);
  }

  TEST_CASE("each budget is shown with its rung") {
    auto o = replaced(3);
    o.of_job = 20;
    o.relaunches_max = 2;
    climb c(o);
    c.fails("a");
    c.fails("b");
    c.fails("b", 1h, "other");
    c.ladder.supplied({4, 4, "", "restartCounts 3, the most of a rank: 1"});
    CHECK(c.ladder.in_words() ==
          "3 restarts of 20 used, 3 for each node (node b: 2), then another machine "
          "(restartCounts 3, the most of a rank: 1), 0 of 2 relaunches");
    CHECK(restart_ladder(each(3)).in_words() == "0 restarts used, 3 for each node");
  }
}
