#include "tests/actors/node_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// A node supervisor whose predecessor was killed: of that, the processes and what was kept are
/// left.
struct successor : node_stage {
  explicit successor(node_stage& predecessor, const std::vector<std::string>& survivors)
      : node_stage("a", predecessor.options.seed + 1) {
    options.uplink.nodes_min = predecessor.options.uplink.nodes_min;
    options.uplink.nodes_max = predecessor.options.uplink.nodes_max;
    predecessor.keeping->crash();
    keeping = predecessor.keeping;
    for (const auto& name : survivors)
      processes->survive(name, static_cast<std::uint64_t>(name.back() - '0'));
    begin();
  }
};

struct running_node : node_stage {
  running_node() {
    begin();
    runs();
  }
};

} // namespace

TEST_SUITE("node: after the whole supervisor was killed") {
  TEST_CASE("its workers are adopted before the hello says so, and it is the same node") {
    running_node before;
    successor s(before, {"g1/0", "g1/1"});
    CHECK(s.accept() == "Hello a running g1");
    CHECK(s.incarnations[0] == before.incarnations[0]);
    CHECK(s.processes->take_deeds() == "g1/0 is adopted, g1/1 is adopted");
    CHECK(s.stores->open_now() == 1);
    s.welcomes();
    s.ends("g1/0", exited(0));
    s.ends("g1/1", exited(0));
    CHECK(s.hears() == "Finished g1 a");
  }

  TEST_CASE("an adopted worker is ended like any other, and so is its failure") {
    running_node before;
    successor s(before, {"g1/0", "g1/1"});
    s.accept();
    s.welcomes();
    s.processes->take_deeds();
    s.ends("g1/1", exited(5));
    CHECK(s.hears() == "Failed g1 a [a/1: exit code 5]");
    CHECK(s.processes->take_deeds() == "g1/0 gets 15");
    s.ends("g1/0", killed_by(SIGTERM));
    CHECK(s.processes->take_deeds() == "sweep");
    s.says(prepare(2, {"a", "b"}).any());
    s.says(start(2).any());
    CHECK(s.processes->living() == "g2/0 g2/1");
  }

  TEST_CASE("a worker that was not started yet is started now, without the master's help") {
    running_node before;
    successor s(before, {"g1/1"});
    CHECK(s.accept() == "Hello a running g1");
    CHECK(s.processes->living() == "g1/0 g1/1");
  }

  TEST_CASE("killed again it is adopted again") {
    running_node before;
    successor second(before, {"g1/0", "g1/1"});
    successor third(second, {"g1/0", "g1/1"});
    CHECK(third.accept() == "Hello a running g1");
  }

  TEST_CASE("what was being ended is not adopted but swept") {
    running_node before;
    before.says(stop(1).any());
    successor s(before, {"g1/0"});
    CHECK(s.accept() == "Hello a idle g0");
    s.welcomes();
    s.says(prepare(2, {"a", "b"}).any());
    CHECK(s.processes->take_deeds() == "sweep");
    CHECK(s.hears() == "Prepared g2 a port 4000");
  }

  TEST_CASE("an agent that only restarts adopts nothing, nor does a later supervisor") {
    running_node before;
    before.crash(before.at.agent);
    before.pass(200ms);
    successor s(before, {});
    CHECK(s.accept() == "Hello a idle g0");
  }

  TEST_CASE(
      "the newest master a node has followed is known to its next uplink, and its successor") {
    node_stage before;
    before.begin();
    before.accept();
    before.welcomes(term{5});
    before.crash(before.at.uplink);
    before.pass(1s);
    before.accept();
    CHECK(before.followed == term{5});
    successor s(before, {});
    s.accept();
    CHECK(s.followed == term{5});
  }

  TEST_CASE("a node that joined anew is that node to its successor") {
    running_node before;
    const auto given_up = messages::author("master").write<messages::Refused>({}, [](auto b) {
      b.setReason("lost");
      b.setRetry(true);
    });
    before.says(given_up.any());
    before.pass(1s);
    before.accept();
    REQUIRE(before.incarnations[1] != before.incarnations[0]);
    successor s(before, {});
    s.accept();
    CHECK(s.incarnations[0] == before.incarnations[1]);
  }

  TEST_CASE("a node that is cut off goes by what its predecessor was told of the others") {
    for (const bool others_suffice : {false, true}) {
      CAPTURE(others_suffice);
      running_node before;
      // The size of the job alone says the contrary.
      before.options.uplink.nodes_min = others_suffice ? 2 : 1;
      before.options.uplink.nodes_max = 2;
      before.says(
          messages::author("master")
              .write<messages::Dispensable>({}, [&](auto b) { b.setOthersSuffice(others_suffice); })
              .any());
      successor s(before, {"g1/0", "g1/1"});
      s.processes->take_deeds();
      for (auto left = limits::isolated_within + 10s; left > duration::zero(); left -= 1s) {
        if (s.transport->dialling())
          s.transport->refuse_dial(error{errc::unavailable, "no route"});
        s.pass(1s);
      }
      CHECK(s.processes->take_deeds() == (others_suffice ? "g1/0 gets 15, g1/1 gets 15" : ""));
    }
  }
}
