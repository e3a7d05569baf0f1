#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// Worlds that train, as the master's diagnosis sees them.
struct master {
  explicit master(bool undoes)
      : core(messages::author("master/diagnosis"), [undoes] {
          diagnosis_policy p;
          p.undoes_worse_scaling = undoes;
          return p;
        }()) {}

  void take(const diagnosis_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* n = std::get_if<diagnosis_core::note>(&e))
        told.push_back(n->event.text);
      else if (const auto* b = std::get_if<diagnosis_core::scale_back>(&e))
        told.push_back("scale back to " + std::to_string(b->nodes_max));
  }
  /// Five minutes of a world; what was told meanwhile.
  std::vector<std::string> runs(const std::vector<node_name>& nodes, double steps_per_second,
                                const node_name& speaker = "a") {
    told.clear();
    take(core.sealed(now, sealed(++generation_, nodes)));
    for (int looks = 0; looks < 600; ++looks, now += 500ms)
      take(core.progress(
          now, report(speaker, static_cast<std::uint64_t>(looks * steps_per_second / 2))));
    return told;
  }

  diagnosis_core core;
  instant now{};
  std::vector<std::string> told;

 private:
  messages::msg<messages::ProgressReport> report(const node_name& node, std::uint64_t steps) const {
    return messages::author(node).write<messages::ProgressReport>(
        generation{generation_}, [&](messages::ProgressReport::Builder b) {
          b.setNode(node);
          auto rank = b.initRanks(1)[0];
          rank.setRank(0);
          rank.setSteps(steps);
        });
  }
  std::uint64_t generation_ = 0;
};

const std::string worse = "3 nodes make 3 steps a second, 2 made 10: the larger world does less as "
                          "a whole (9 steps of nodes a second instead of 20)";

} // namespace

TEST_SUITE("diagnosis_core: a larger world that does less than a smaller one did") {
  TEST_CASE("is told, with what goes back") {
    master m(false);
    CHECK(m.runs({"a", "b"}, 10).empty());
    CHECK(m.runs({"a", "b", "c"}, 3) ==
          std::vector<std::string>{worse + ". actor-shell scale MIN:2 goes back; "
                                           "--undo-worse-scaling does so by itself"});
    CHECK(m.core.in_words().find(", 3 steps a second") != std::string::npos);
  }

  TEST_CASE("is undone where that was asked for") {
    master m(true);
    m.runs({"a", "b"}, 10);
    CHECK(m.runs({"a", "b", "c"}, 3) ==
          std::vector<std::string>{worse + "; the job is scaled back to at most 2",
                                   "scale back to 2"});
  }

  TEST_CASE("is not judged by nodes that do not have its first rank") {
    master m(true);
    m.runs({"a", "b"}, 10);
    CHECK(m.runs({"a", "b", "c"}, 3, "b").empty());
  }

  TEST_CASE("a world that has ended is not measured on") {
    master m(true);
    m.runs({"a", "b"}, 10);
    m.core.ended(m.now, generation{1});
    CHECK(m.core.in_words() == "no generation is watched");
  }
}
