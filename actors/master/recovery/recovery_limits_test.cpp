#include "tests/actors/planner_story.hpp"

#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

recovery_core::effects comes(planner_story& s, const node_name& node, duration stop_within) {
  return s.core.node_present(
      s.now, present(node, {}, [stop_within](messages::NodePresent::Builder b) {
        b.setStopWithinMs(static_cast<std::uint64_t>(milliseconds_of(stop_within)));
      }));
}

std::vector<duration> may_take(const recovery_core::effects& effects) {
  for (const auto& e : effects)
    if (const auto* begun = std::get_if<recovery_core::start_generation>(&e))
      return begun->obey_within;
  return {};
}

} // namespace

TEST_SUITE("recovery_core: each node has its own limit") {
  TEST_CASE("its workers' time to end, and then some") {
    planner_story s(2, 2);
    comes(s, "a", 90s);
    CHECK(may_take(comes(s, "b", 10s)) == std::vector<duration>{120s, 40s});
  }

  TEST_CASE("a node of an older version does not say it: the master's own limit counts") {
    planner_story s(2, 2);
    comes(s, "a", 90s);
    CHECK(may_take(s.core.node_present(s.now, present("b"))) == std::vector<duration>{120s, 60s});
  }
}
