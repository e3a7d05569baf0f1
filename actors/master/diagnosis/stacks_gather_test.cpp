#include "actors/master/diagnosis/stacks_gather.hpp"

#include "actors/master/diagnosis/stacks_budget.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

const std::vector<diagnosis_core::part> two{{"a", 0, 2}, {"b", 2, 2}};

messages::msg<messages::StacksWanted> wanted(std::uint64_t dump) {
  return messages::author("diagnosis").write<messages::StacksWanted>(generation{1}, [&](auto b) {
    b.setDump(dump);
    b.setWithinMs(5'000);
  });
}

messages::msg<messages::MergedStacks> answer(const node_name& node, std::uint64_t dump) {
  return messages::author(node).write<messages::MergedStacks>(generation{1}, [&](auto b) {
    b.setNode(node);
    b.setDump(dump);
  });
}

/// "dump: those that came; those that did not".
std::string told(const std::optional<stacks_gather::gathered>& g) {
  if (!g)
    return "";
  std::string text = std::to_string(g->dump) + ":";
  for (const auto& m : g->of)
    text += std::string(" ") + m.read()->getNode().cStr();
  text += ";";
  for (const auto& p : g->absent)
    text += " " + p.node + " from " + std::to_string(p.first_rank);
  return text;
}

} // namespace

TEST_SUITE("stacks") {
  TEST_CASE("are complete with the last node's answer, in the order in which they came") {
    stacks_gather g;
    CHECK_FALSE(g.dump());
    CHECK_FALSE(g.begin(dawn, wanted(3), two));
    CHECK(g.dump() == 3);
    CHECK(told(g.take(answer("b", 3))) == "");
    CHECK(told(g.take(answer("a", 3))) == "3: b a;");
    CHECK_FALSE(g.dump());
    CHECK_FALSE(g.next_wakeup());
    CHECK(told(g.tick(dawn + 1h)) == "");
  }

  TEST_CASE("of a node that does not answer are not waited for without end, and it is named") {
    stacks_gather g;
    g.begin(dawn, wanted(3), two);
    g.take(answer("a", 3));
    REQUIRE(g.next_wakeup() == dawn + 5'700ms);
    CHECK(told(g.tick(dawn + 5'699ms)) == "");
    CHECK(told(g.tick(dawn + 5'700ms)) == "3: a; b from 2");
    CHECK(told(g.take(answer("b", 3))) == "");
  }

  TEST_CASE("count once for each node that was asked, and for this question only") {
    stacks_gather g;
    CHECK(told(g.take(answer("a", 0))) == "");
    g.begin(dawn, wanted(3), two);
    for (const auto& [node, dump] : {std::pair("a", 2), {"a", 3}, {"a", 3}, {"c", 3}})
      CHECK(told(g.take(answer(node, static_cast<std::uint64_t>(dump)))) == "");
    CHECK(told(g.take(answer("b", 3))) == "3: a b;");
  }

  TEST_CASE("that are asked for anew take the place of those under way") {
    stacks_gather g;
    g.begin(dawn, wanted(3), two);
    g.take(answer("a", 3));
    CHECK(g.begin(dawn + 1s, wanted(4), two) == 3);
    CHECK(told(g.take(answer("b", 3))) == "");
    CHECK(g.next_wakeup() == dawn + 6'700ms);
    CHECK(told(g.tick(dawn + 6'700ms)) == "4:; a from 0 b from 2");
  }

  TEST_CASE("follow verdicts at once two times, then ever more seldom, until there was a calm") {
    struct row {
      duration at;
      bool may;
    };
    stacks_budget budget{diagnosis_policy{}};
    for (const row& r : std::vector<row>{
             {0s, true},
             {2s, true}, // the second at once
             {3s, false},
             {31'999ms, false},
             {32s, true}, // 30 s behind the last
             {91s, false},
             {92s, true}, // 60 s
             {211s, false},
             {212s, true},              // 120 s
             {212s + 239s, false},      // refused ones count for nothing
             {212s + 1h + 239s, true},  // 240 s and more, no hour of calm yet
             {212s + 1h + 240s, false}, // 480 s
             {212s + 1h + 719s, true},  //
             {1h + 931s + 2h, true},    // 960 s, and an hour of calm: anew
             {1h + 931s + 2h + 1s, true},
             {1h + 931s + 2h + 2s, false},
             {1h + 931s + 2h + 31s, true},
         }) {
      CAPTURE(milliseconds_of(r.at));
      CHECK(budget.take(dawn + r.at) == r.may);
    }
  }

  TEST_CASE("of hangs without end are at most a few, then one in an hour") {
    stacks_budget budget{diagnosis_policy{}};
    int taken = 0;
    for (int second = 0; second < 24 * 3'600; ++second)
      taken += budget.take(dawn + std::chrono::seconds(second)) ? 1 : 0;
    CHECK(taken == 2 + 7 + 22);
  }
}
