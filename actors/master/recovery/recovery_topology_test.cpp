#include "tests/actors/planner_story.hpp"

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

rendezvous_options with_file(std::uint32_t nodes) {
  auto o = planner_story::sizes(nodes, nodes);
  o.topology.file = true;
  return o;
}

/// a and c in one rack, b and d in another.
topology_answer two_racks() {
  auto tree = topology::network_tree::of({{"a", {"x"}}, {"b", {"y"}}, {"c", {"x"}}, {"d", {"y"}}});
  REQUIRE(tree.has_value());
  return {std::make_shared<const topology::network_tree>(std::move(*tree)), "racks", "lines"};
}

void come(planner_story& s, const std::vector<node_name>& nodes) {
  for (const auto& node : nodes)
    s.comes(node);
}

bool begins(const recovery_core::effects& effects, const std::string& world) {
  return text(effects).find("begin WorldProposed g1: " + world) != std::string::npos;
}

const std::string by_arrival = "a(0,1) b(2,3) c(4,5) d(6,7)";
const std::string by_rack = "a(0,1) c(2,3) b(4,5) d(6,7)";

} // namespace

TEST_SUITE("recovery_core: ranks by the network") {
  TEST_CASE("the first world waits for the file, and then has its order") {
    planner_story s(with_file(4), planner_story::restarts(3));
    come(s, {"a", "b", "c", "d"});
    CHECK(s.last == "");
    CHECK(s.core.next_wakeup() == dawn + 65s);
    CHECK(s.passes(30s) == "");
    CHECK(begins(s.core.topology_known(s.now, two_racks()), by_rack));
  }

  TEST_CASE("a file that is known first is not waited for") {
    planner_story s(with_file(4), planner_story::restarts(3));
    CHECK(notes(s.core.topology_known(s.now, two_racks())).find("racks is taken for") == 0);
    come(s, {"a", "b", "c", "d"});
    CHECK(s.last.find("begin WorldProposed g1: " + by_rack) != std::string::npos);
    CHECK(s.said.find("ranks follow the network: of 4 nodes the ring leaves a switch 2 times "
                      "instead of 4") != std::string::npos);
  }

  TEST_CASE("a file that is no good: the order without it, at once") {
    planner_story s(with_file(4), planner_story::restarts(3));
    come(s, {"a", "b", "c", "d"});
    CHECK(begins(s.core.topology_known(s.now, {failure(errc::invalid, "bad"), "racks", ""}),
                 by_arrival));
  }

  TEST_CASE("a disk that never answers: the order without it, when the time is over") {
    planner_story s(with_file(4), planner_story::restarts(3));
    come(s, {"a", "b", "c", "d"});
    CHECK(s.passes(64s) == "");
    CHECK(s.passes(1s).find("begin WorldProposed g1: " + by_arrival) != std::string::npos);
    CHECK(s.said.find("ranks do not follow the network: the disk has not answered for") !=
          std::string::npos);
  }

  TEST_CASE("the wait for the file is no lack of nodes: the join timeout does not end the job") {
    auto o = with_file(4);
    o.join_timeout = 10s;
    planner_story s(o, planner_story::restarts(3));
    come(s, {"a", "b", "c", "d"});
    CHECK(s.passes(20s) == "");
    CHECK(begins(s.core.topology_known(s.now, two_racks()), by_rack));
  }

  TEST_CASE("a later world does not wait, and keeps the ranks that it has") {
    planner_story s(with_file(4), planner_story::restarts(3));
    s.core.topology_known(s.now, two_racks());
    come(s, {"a", "b", "c", "d"});
    s.is_sealed();
    CHECK(s.fails_and_ends("b").find(by_rack) != std::string::npos);
    CHECK(s.said.find("all nodes kept their ranks") != std::string::npos);
  }

  TEST_CASE("what nodes say themselves counts where there is no file") {
    planner_story s(4, 4);
    const auto comes = [&s](const node_name& node, const std::string& rack) {
      return text(s.core.node_present(
          s.now, present(node, {}, [&rack](auto b) { b.initSwitches(1).set(0, rack); })));
    };
    comes("a", "x");
    comes("b", "y");
    comes("c", "x");
    CHECK(comes("d", "y").find("begin WorldProposed g1: " + by_rack) != std::string::npos);
  }
}
