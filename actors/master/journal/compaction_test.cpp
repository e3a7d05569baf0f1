#include "actors/master/journal/compaction.hpp"

#include "actors/master/recovery/recovery_core.hpp"
#include "runtime/base/random.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

using history = std::vector<messages::any_msg>;

const std::vector<node_name> names{"a", "b", "c", "d"};

messages::any_msg counted(std::uint64_t g, std::uint32_t restarts, const node_name& node,
                          std::uint32_t used, std::uint32_t fruitless) {
  messages::author author("test");
  return author
      .write<messages::RestartCounted>(generation{g},
                                       [&](auto b) {
                                         b.setGeneration(g);
                                         b.setRestartCount(restarts);
                                         b.setNode(node);
                                         b.setRestartsUsed(used);
                                         b.setWithoutProgress(fruitless);
                                       })
      .any();
}

/// A job as a master would have recorded it.
history some_job(random_source& random, bool version_1) {
  history all;
  std::uint64_t g = 0;
  std::uint32_t restarts = 0;
  std::map<node_name, std::uint32_t> used;
  for (auto steps = random.below(40); steps > 0; --steps) {
    all.push_back(proposed_record(++g));
    if (random.below(4) == 0)
      continue;
    std::vector<node_name> world(names.begin(), names.begin() + 1 + random.below(names.size()));
    all.push_back(sealed_record(g, world, restarts));
    if (random.below(2) == 0) {
      const auto& node = world[random.below(world.size())];
      const auto of_node = ++used[node];
      all.push_back(counted(g, ++restarts, node, version_1 ? 0 : of_node,
                            static_cast<std::uint32_t>(random.below(3))));
    }
  }
  if (random.below(5) == 0)
    all.push_back(concluded_record(random.below(2) == 0));
  return all;
}

/// All that can be seen of what the planner makes of it: what it says, and what it does next.
std::string recalled(const history& h) {
  rendezvous_options sizes;
  sizes.nodes_min = sizes.nodes_max = 2;
  recovery_options costs;
  costs.max_restarts = 5;
  costs.without_progress_max = 4;
  costs.start_pause.first = {};
  recovery_core core(sizes, costs, messages::author("r"), dawn);
  auto all = lines(text(core.recall(dawn, h)), core.in_words());
  for (const auto& node : names)
    all =
        lines(all, text(core.node_present(dawn, present(node, running_in(core.current().value)))));
  all = lines(all, text(core.tick(dawn + 1h)));
  for (const auto& node : names)
    for (int more = 0; more < 4; ++more) {
      const auto g = core.current();
      core.sealed(dawn, sealed(g.value, {node, "z"}));
      core.failed(dawn + 1s, failed(node, g.value, {1}));
      all = lines(all, text(core.generation_ended(dawn + 1s, g, "it failed")));
    }
  return all;
}

} // namespace

TEST_SUITE("journal: compaction") {
  TEST_CASE("the planner recalls the same, whatever is appended afterwards") {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      CAPTURE(seed);
      random_source random(seed);
      const bool version_1 = random.below(4) == 0;
      const auto whole = some_job(random, version_1);
      const auto cut = static_cast<std::ptrdiff_t>(random.below(whole.size() + 1));
      history shorter = journal::compacted(history(whole.begin(), whole.begin() + cut));
      shorter.insert(shorter.end(), whole.begin() + cut, whole.end());
      REQUIRE(recalled(shorter) == recalled(whole));
      REQUIRE(recalled(journal::compacted(shorter)) == recalled(whole));
    }
  }

  TEST_CASE("its size is that of the job, not of its past") {
    history all;
    std::map<node_name, std::uint32_t> used;
    for (std::uint64_t g = 1; g <= 5'000; ++g) {
      all.push_back(proposed_record(g));
      all.push_back(sealed_record(g, names, static_cast<std::uint32_t>(g - 1)));
      const auto& node = names[g % names.size()];
      all.push_back(counted(g, static_cast<std::uint32_t>(g), node, ++used[node], 0));
    }
    const auto kept = journal::compacted(all);
    CHECK(kept.size() == 2 + names.size());
    CHECK(recalled(kept) == recalled(all));
    CHECK(journal::compacted(kept).size() == kept.size());
  }

  TEST_CASE("counted restarts of many nodes are bounded, and the newest remain") {
    history all;
    for (std::uint64_t n = 1; n <= limits::journal_restarts_kept + 10; ++n)
      all.push_back(counted(1, static_cast<std::uint32_t>(n), "n" + std::to_string(n), 1, 0));
    const auto kept = journal::compacted(all);
    CHECK(kept.size() == limits::journal_restarts_kept);
    CHECK(kept.back().as<messages::RestartCounted>().read()->getRestartCount() == all.size());
  }

  TEST_CASE("of sizes the newest stay") {
    messages::author author("test");
    const auto sizes = [&](std::uint32_t most) {
      return author.write<messages::SizesChanged>({}, [most](auto b) { b.setNodesMax(most); })
          .any();
    };
    const auto kept = journal::compacted({sizes(2), sizes(3), counted(1, 1, "a", 1, 0), sizes(4)});
    REQUIRE(kept.size() == 2);
    CHECK(kept.back().as<messages::SizesChanged>().read()->getNodesMax() == 4);
  }

  TEST_CASE("of the job's options the newest stay") {
    messages::author author("test");
    const auto taken = [&](const char* node) {
      return author.write<messages::JobOptionsTaken>({}, [node](auto b) { b.setNode(node); }).any();
    };
    const auto kept = journal::compacted({taken("a"), counted(1, 1, "a", 1, 0), taken("b")});
    REQUIRE(kept.size() == 2);
    CHECK(kept.back().as<messages::JobOptionsTaken>().read()->getNode() == "b");
  }

  TEST_CASE("a verdict, and that it was told, stay; what came between does not") {
    messages::author author("test");
    const auto farewell = author.write<messages::FarewellEnded>({}, [](auto) {}).any();
    const auto kept = journal::compacted(
        {proposed_record(1), concluded_record(true), proposed_record(2), farewell});
    REQUIRE(kept.size() == 3);
    CHECK(kept[1].is<messages::Concluded>());
    CHECK(kept[2].is<messages::FarewellEnded>());
  }
}
