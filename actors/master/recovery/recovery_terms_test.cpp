#include "runtime/base/generations.hpp"
#include "tests/actors/planner_story.hpp"

#include <set>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

constexpr term older_term{1'763'935'000'123};
constexpr term newer_term{1'763'935'060'456};

/// A planner of a job of 1 to 2 nodes, under a term of its own.
planner_story master_of(term term, const std::vector<messages::any_msg>& past = {}) {
  auto sizes = planner_story::sizes(1, 2);
  sizes.last_call.reset();
  return {sizes, planner_story::restarts(100), past, term};
}

/// The generation that it forms of the nodes that are here.
generation forms(planner_story& master) {
  if (master.core.current_phase() == recovery_core::phase::gathering)
    master.passes(15s);
  REQUIRE(master.core.current_phase() == recovery_core::phase::forming);
  master.is_sealed();
  return master.core.current();
}

/// The same after the failure of `node`.
generation forms_again(planner_story& master, const node_name& node) {
  master.fails_and_ends(node);
  return forms(master);
}

/// What both propose from here on, each for its one node.
void go_apart(planner_story& older, const node_name& there, planner_story& newer,
              const node_name& here) {
  std::set<std::uint64_t> numbers{older.core.current().value};
  for (int i = 0; i < 5; ++i) {
    const auto of_older = forms_again(older, there);
    CHECK(numbers.insert(of_older.value).second);
    CHECK(numbers.insert(newer.core.current().value).second);
    // The newer master's world is the newer one, whichever was formed later.
    CHECK(of_older < newer.core.current());
    forms_again(newer, here);
  }
}

} // namespace

/// Two masters of one job, which cannot hear each other. A number is in every fence and in the
/// name of every snapshot: used for two worlds, ranks of one would go on from the other's state.
TEST_SUITE("recovery_core: two masters") {
  TEST_CASE("after a cut, the newer without a journal: no number is proposed by both") {
    auto older = master_of(older_term), newer = master_of(newer_term);
    older.comes("a");
    older.comes("b");
    const auto shared = forms(older);
    older.is_lost_and_ends("b");
    const auto without_b = forms(older);
    newer.comes("b", {}, running_in(shared.value));
    // Longer than it waits for strangers: the user is told how long, and why.
    CHECK(newer.said.find("starting in 15.0 s unless the others come first; they ran before this "
                          "master began, and may be on their way") != std::string::npos);
    CHECK(forms(newer) > without_b);
    go_apart(older, "a", newer, "b");
  }

  TEST_CASE("from the beginning, with nodes that know of no other") {
    auto older = master_of(older_term), newer = master_of(newer_term);
    older.comes("a");
    newer.comes("b");
    CHECK(forms(older) != forms(newer));
    go_apart(older, "a", newer, "b");
  }

  TEST_CASE("from copies of one journal") {
    const std::vector<messages::any_msg> journal{proposed_record(4), sealed_record(4, {"a", "b"})};
    auto older = master_of(older_term, journal), newer = master_of(newer_term, journal);
    older.comes("a", {}, running_in(4));
    newer.comes("b", {}, running_in(4));
    for (auto* master : {&older, &newer}) {
      master->passes(15s);
      master->ends("a node did not come back");
    }
    CHECK(forms(older) != forms(newer));
    go_apart(older, "a", newer, "b");
  }

  TEST_CASE("a journal of the version before is taken up, and its count goes on") {
    auto master = master_of(newer_term, {proposed_record(17)});
    master.comes("a");
    CHECK(count_of(forms(master)) == 18);
    CHECK(master.core.in_words().find("generation 18 runs") == 0);
  }
}
