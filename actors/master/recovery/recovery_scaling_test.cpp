#include "tests/actors/planner_story.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <utility>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

using phase = recovery_core::phase;

struct scaled_story : planner_story {
  using planner_story::planner_story;
  scaled_story(planner_story s) : planner_story(std::move(s)) {}

  std::string scales(std::uint32_t low, std::uint32_t high) {
    return wishes([low, high](messages::ScaleRequest::Builder b) {
      b.setNodesMin(low);
      b.setNodesMax(high);
    });
  }
  std::string scales_most(std::uint32_t high) {
    return wishes([high](messages::ScaleRequest::Builder b) {
      b.setNodesMax(high);
      b.setKeepsMin(true);
    });
  }
  std::string plans(const std::string& id, std::uint32_t high) {
    return wishes([&](messages::ScaleRequest::Builder b) {
      b.setNodesMin(1);
      b.setNodesMax(high);
      b.setPlan(id);
    });
  }
  std::string wishes(const std::function<void(messages::ScaleRequest::Builder)>& write) {
    const auto effects = core.scale_wanted(
        now, ++wished, messages::author("shell").write<messages::ScaleRequest>({}, write));
    said = notes(effects);
    recovery_core::effects others;
    for (const auto& e : effects)
      if (const auto* told = std::get_if<recovery_core::direct>(&e);
          told && told->message.is<messages::Dispensable>())
        dispensable = text(recovery_core::effects{e});
      else
        others.push_back(e);
    return text(others);
  }
  std::uint64_t wished = 0;
};

scaled_story running(const std::vector<node_name>& nodes, std::uint32_t low, std::uint32_t high) {
  return scaled_story(planner_story::that_runs(nodes, planner_story::sizes(low, high)));
}

messages::any_msg sizes_record(std::uint32_t low, std::uint32_t high) {
  return messages::author("x")
      .write<messages::SizesChanged>(generation{1},
                                     [&](auto b) {
                                       b.setNodesMin(low);
                                       b.setNodesMax(high);
                                     })
      .any();
}

} // namespace

TEST_SUITE("recovery_core: a job is scaled") {
  TEST_CASE("by a plan of the cluster: once, whatever a person has said since") {
    auto s = running({"a", "b"}, 1, 2);
    const auto first = s.plans("uid-1", 3);
    CHECK(first.find("record SizesChanged 1:3, plan uid-1\nanswer 1: accepted") == 0);
    CHECK(s.plans("uid-1", 3) == "answer 2: accepted, that plan was done before");
    CHECK(s.scales(1, 2).find("record SizesChanged 1:2, plan uid-1\n") == 0);
    CHECK(s.plans("uid-1", 3) == "answer 4: accepted, that plan was done before");
    // The sizes are so already; but they may change before it is told again.
    CHECK(s.plans("uid-2", 2)
              .find("record SizesChanged 1:2, plan uid-1, plan uid-2\nanswer 5: "
                    "accepted, the job is one of 1 to 2 nodes already") == 0);
    // A later master knows it from the journal.
    const auto record = messages::author("x").write<messages::SizesChanged>(
        generation{1}, [](messages::SizesChanged::Builder b) {
          b.setNodesMin(1);
          b.setNodesMax(2);
          b.initPlansTaken(1).set(0, "uid-1");
        });
    scaled_story later(1, 2, std::vector{record.any()});
    CHECK(later.plans("uid-1", 3) == "answer 1: accepted, that plan was done before");
    CHECK(later.plans("uid-3", 3).find("record SizesChanged 1:3, plan uid-1, plan uid-3\n") == 0);
  }

  TEST_CASE("to fewer nodes: the generation ends by a plan, and the last of its nodes stand by") {
    auto s = running({"a", "b", "c"}, 1, 3);
    CHECK(s.scales(1, 2) ==
          lines("record SizesChanged 1:2",
                "answer 1: accepted, the job is one of 1 to 2 nodes now; its 3 nodes start again "
                "as fewer, and the others stand by",
                "stop g1: the job is scaled to at most 2 nodes"));
    CHECK(s.said == "the job is scaled from 1 to 3 nodes to 1 to 2 nodes");
    const auto next = s.ends();
    CHECK(next.find("begin WorldProposed g2: a(0,1) b(2,3)\n") != std::string::npos);
    CHECK(next.find("StandBy") != std::string::npos);
    s.is_sealed();
    // The one that stands by takes a place that is free, as ever.
    CHECK(s.is_lost_and_ends("b").find("begin WorldProposed g3: a(0,1) c(2,3)") !=
          std::string::npos);
  }

  TEST_CASE("of the most alone, the fewest stay, unless they would be more") {
    auto s = running({"a", "b", "c"}, 2, 3);
    CHECK(s.scales_most(2).find("record SizesChanged 2:2\n") == 0);
    auto other = running({"a", "b", "c"}, 2, 3);
    CHECK(other.scales_most(1).find("record SizesChanged 1:1\n") == 0);
  }

  TEST_CASE("to more nodes: those that stand by are taken in") {
    auto s = running({"a", "b"}, 1, 2);
    s.passes(1h);
    s.comes("c");
    CHECK(s.last.find("StandBy") != std::string::npos);
    CHECK(s.scales(1, 3) ==
          lines("record SizesChanged 1:3",
                "answer 1: accepted, the job is one of 1 to 3 nodes now; 2 nodes run workers, 3 "
                "nodes here"));
    CHECK(s.passes(100ms) == "stop g1: 1 more node is here");
    CHECK(s.ends().find("begin WorldProposed g2: a(0,1) b(2,3) c(4,5)") != std::string::npos);
  }

  TEST_CASE("to more nodes than there are: nothing is stopped for them before they come") {
    auto s = running({"a", "b"}, 2, 2);
    CHECK(s.scales(4, 6).find("stop") == std::string::npos);
    CHECK(s.passes(1h) == "");
    // But a world of two is none any more.
    CHECK(s.is_lost_and_ends("b") == "");
    CHECK(s.core.current_phase() == phase::gathering);
    s.comes("c");
    s.comes("d");
    CHECK(s.comes("e").find("begin WorldProposed g2: a(0,1) c(2,3) d(4,5) e(6,7)") !=
          std::string::npos);
  }

  TEST_CASE("a job that waits for nodes starts with those that are here") {
    scaled_story s(planner_story::sizes(3, 3), planner_story::restarts(3));
    s.comes("a");
    CHECK(s.comes("b") == "");
    const auto out = s.scales(1, 2);
    CHECK(out.find("record SizesChanged 1:2\nanswer 1: accepted, the job is one of 1 to 2 nodes "
                   "now; 2 nodes here, and none runs workers\n") == 0);
    CHECK(out.find("begin WorldProposed g1: a(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("while a generation is formed, it is stopped once it is sealed") {
    scaled_story s(planner_story::sizes(2, 2), planner_story::restarts(3));
    s.comes("a");
    s.comes("b");
    REQUIRE(s.core.current_phase() == phase::forming);
    CHECK(s.scales(1, 1).find("stop") == std::string::npos);
    CHECK(s.is_sealed() == "stop g1: the job is scaled to at most 1 node");
  }

  TEST_CASE("while a member is away, its return or its loss comes first") {
    auto s = running({"a", "b", "c"}, 1, 3);
    s.goes_away("c");
    CHECK(s.scales(1, 2).find("stop") == std::string::npos);
    SUBCASE("it returns") {
      CHECK(s.comes("c").find("stop g1: the job is scaled to at most 2 nodes") !=
            std::string::npos);
    }
    SUBCASE("it is lost") {
      CHECK(s.is_lost_and_ends("c").find("begin WorldProposed g2: a(0,1) b(2,3)") !=
            std::string::npos);
    }
  }

  TEST_CASE("work that is partly done is not done again") {
    auto s = running({"a", "b"}, 1, 2);
    s.finishes("a");
    CHECK(s.scales(1, 1).find("stop") == std::string::npos);
  }

  TEST_CASE("what is refused changes nothing, and says why") {
    auto s = running({"a", "b"}, 2, 2);
    CHECK(s.scales(0, 2) == fmt::format("answer 1: refused, 0:2 is no MIN:MAX with 1 to {} nodes",
                                        limits::nodes_max));
    CHECK(s.scales(3, 2).find("refused") != std::string::npos);
    CHECK(s.scales(1, limits::nodes_max + 1).find("refused") != std::string::npos);
    CHECK(s.scales(2, 2) == "answer 4: accepted, the job is one of 2 nodes already");
    auto one = planner_story::sizes(1, 1);
    CHECK(scaled_story(planner_story::that_runs({"a"}, one))
              .scales(1, 2)
              .find("record SizesChanged 1:2") == 0);
    one.may_have_others = false;
    scaled_story alone(planner_story::that_runs({"a"}, one));
    CHECK(alone.scales(1, 2).find("refused, the job was started for one node") !=
          std::string::npos);
    auto sizes = planner_story::sizes(2, 4);
    sizes.unit = 2;
    scaled_story units(planner_story::that_runs({"a", "b", "c", "d"}, sizes));
    CHECK(units.scales(1, 1).find("refused, no world is possible with 1 node (--node_unit") !=
          std::string::npos);
    CHECK(units.scales(2, 3).find("stop g1: the job is scaled to at most 3 nodes") !=
          std::string::npos);
    CHECK(units.ends().find("begin WorldProposed g2: a(0,1) b(2,3)") != std::string::npos);
    auto over = running({"a", "b"}, 2, 2);
    over.finishes("a");
    over.finishes("b");
    over.ends();
    REQUIRE(over.core.current_phase() == phase::concluded);
    CHECK(over.scales(1, 2) == "answer 1: refused, the job is over");
  }

  TEST_CASE("a rank that could be asked for before still can") {
    auto s = running({"a", "b"}, 1, 4);
    s.scales(1, 2);
    CHECK(s.comes("c", 3).find("evict") == std::string::npos);
    CHECK(s.scales(1, 6).find("accepted") != std::string::npos);
    CHECK(s.comes("d", 5).find("evict") == std::string::npos);
  }

  TEST_CASE("a later master goes by the record") {
    scaled_story s(planner_story::sizes(3, 3), planner_story::restarts(3), {sizes_record(2, 2)});
    s.comes("a");
    CHECK(s.comes("b").find("begin WorldProposed g1: a(0,1) b(2,3)") != std::string::npos);
  }

  TEST_CASE("a master that falls before it has stopped the world leaves that to the next") {
    scaled_story s(planner_story::sizes(1, 3), planner_story::restarts(3),
                   {proposed_record(1), sealed_record(1, {"a", "b", "c"}), sizes_record(1, 2)});
    REQUIRE(s.core.current_phase() == phase::running);
    s.comes("a");
    s.comes("b");
    CHECK(s.comes("c").find("stop g1: the job is scaled to at most 2 nodes") != std::string::npos);
  }

  TEST_CASE("whether a node is dispensable follows the size, and is said when it changes") {
    auto s = running({"a", "b"}, 2, 2);
    s.dispensable.clear();
    CHECK(s.scales(1, 2).find("accepted") != std::string::npos);
    CHECK(s.dispensable == "to a,b: Dispensable g1: yes");
    s.scales(2, 2);
    CHECK(s.dispensable == "to a,b: Dispensable g1: no");
    s.dispensable.clear();
    s.scales(2, 3);
    CHECK(s.dispensable == "");
  }
}
