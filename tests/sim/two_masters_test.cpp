// A master that is out of reach is not dead. Here it and its successor command at the same time,
// each the nodes on its side of a cut, until the cut heals (ADR 12).

#include "tests/sim/two_masters.hpp"

#include "actors/limits.hpp"
#include "tests/rounds.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::sim;

namespace {

constexpr std::uint32_t nodes = 4;

cluster_options a_job(std::uint64_t seed) {
  cluster_options o;
  o.seed = seed;
  o.nodes = o.nodes_max = nodes;
  o.nodes_min = 2;
  o.trainers.training = 60s;
  o.train_on_within = 300s;
  o.connect_within = 300s;
  return o;
}

/// What holds under each of them. The other checkers count what one journal says.
void watch(cluster& c) {
  c.all().observers = {
      checkers::newest_master_commands(c.all()),
      checkers::one_world_per_generation(c.all()),
      checkers::processes_follow_the_generation(c.all(), c.training()),
      checkers::start_after_prepared(c.all()),
      checkers::nothing_left_behind(c.all(), c.training()),
      checkers::actors_are_sound(c.all()),
      checkers::queues_are_bounded(c.all()),
  };
}

/// Which generation the node's living processes are of; 0: none lives.
generation runs(cluster& c, const std::string& node) {
  generation which{};
  for (const auto& p : c.training().all())
    if (p.node == node && !p.ended && !p.stray)
      which = std::max(which, p.which);
  return which;
}

bool all_left(const cluster& c) {
  return c.outcomes().size() == nodes;
}

void all_succeeded(cluster& c) {
  REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);
  REQUIRE(all_left(c));
  for (const auto& left : c.outcomes())
    CHECK_MESSAGE(left.second.success, left.first << ": " << left.second.reason);
}

} // namespace

TEST_CASE("each side of a cut trains under its master; once it heals all follow the newer one") {
  cluster c(a_job(1));
  watch(c);
  c.start_everything();
  c.run_for(10s, [&c] { return c.training().training(); });
  const auto before = runs(c, "n1");
  cut(c, {"n3", "n4"}, cluster::master_name());
  cut(c, {"n1", "n2"}, cluster::rival_name());
  send_to_rival(c, "n3");
  send_to_rival(c, "n4");
  c.start_master(cluster::rival_name());
  // It waits for the others of the generation that its nodes were in, which may be on their way.
  c.run_for(limits::recall_within + 5s);
  REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);

  const auto older = runs(c, "n1"), newer = runs(c, "n3");
  CHECK(before < older);
  CHECK(older < newer);
  CHECK(runs(c, "n2") == older);
  CHECK(runs(c, "n4") == newer);

  // The address has moved for all nodes, but a node that has a link with the older master keeps it.
  c.net().calm();
  send_to_rival(c, "n1");
  send_to_rival(c, "n2");
  c.run_for(5s);
  CHECK(runs(c, "n1") == older);
  c.net().break_links("n1");
  c.net().break_links("n2");
  c.run_for(15s);
  REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);
  for (const auto* node : {"n1", "n2", "n3", "n4"})
    CHECK(runs(c, node) > newer);

  // Back at the older one a node finds that it has heard of a newer, and goes on training.
  const auto all = runs(c, "n4");
  c.net().resolve("n4", cluster::master_name(), cluster::master_name());
  c.net().break_links("n4");
  c.run_for(300ms);
  CHECK(runs(c, "n4") == all);
  send_to_rival(c, "n4");
  c.run_for(400s, [&c] { return all_left(c); });
  all_succeeded(c);
}

TEST_CASE("whenever the cut comes and heals, no node goes back to the older master") {
  for (std::uint64_t seed = 1; seed <= rounds(60); ++seed) {
    CAPTURE(seed);
    cluster c(a_job(seed));
    watch(c);
    auto& chance = c.all().random;
    c.start_everything();
    c.run_for(c.all().between(0ms, 8s));
    split(c);
    for (int change = 0; change < 12 && !c.all().broken; ++change) {
      c.run_for(c.all().between(0ms, 2s));
      const auto node = cluster::node_name_of(static_cast<std::uint32_t>(1 + chance.below(nodes)));
      c.net().resolve(node, cluster::master_name(),
                      chance.below(2) == 0 ? cluster::master_name() : cluster::rival_name());
      if (chance.below(2) == 0)
        c.net().break_links(node);
      if (chance.below(6) == 0)
        c.crash_supervisor(node, c.all().between(10ms, 500ms));
    }
    c.net().calm();
    // A dial that was under way when the address moved may still come to the older one.
    for (const duration settles : {duration{limits::dial_within} + 1s, duration{}}) {
      for (std::uint32_t i = 1; i <= nodes; ++i) {
        send_to_rival(c, cluster::node_name_of(i));
        c.net().break_links(cluster::node_name_of(i));
      }
      c.run_for(settles);
    }
    c.run_for(400s, [&c] { return all_left(c); });
    all_succeeded(c);
  }
}
