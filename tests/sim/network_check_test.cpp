#include "tests/rounds.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::sim;

// Nodes are checked before they take part: the product's own actors on simulated ports, with nodes
// and links that are broken, and with what else may happen meanwhile.

namespace {

using names = std::set<std::string>;

names all_but(std::uint32_t nodes, const names& without) {
  names all;
  for (std::uint32_t n = 1; n <= nodes; ++n)
    if (const auto name = cluster::node_name_of(n); without.count(name) == 0)
      all.insert(name);
  return all;
}

struct checked_job : cluster {
  explicit checked_job(std::uint32_t nodes, std::uint32_t nodes_min = 1, std::uint64_t seed = 1)
      : cluster(options(nodes, nodes_min, seed)) {
    all().observers = {checkers::one_world_per_generation(all()), checkers::actors_are_sound(all()),
                       checkers::processes_follow_the_generation(all(), training()),
                       checkers::start_after_prepared(all()), checkers::ranks_are_dense(all())};
  }

  static cluster_options options(std::uint32_t nodes, std::uint32_t nodes_min, std::uint64_t seed) {
    cluster_options o;
    o.seed = seed;
    o.nodes = o.nodes_max = nodes;
    o.nodes_min = nodes_min;
    o.checks_nodes = true;
    o.trainers.training = 5s;
    return o;
  }

  /// Messages between these two get to neither.
  void cut(const std::string& a, const std::string& b) {
    net().hold(a, b);
    net().hold(b, a);
  }

  void trains(duration within) {
    run_for(within, [this] { return training().training(); });
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    REQUIRE(training().training());
  }

  /// The nodes that have workers in the newest generation.
  names members() const {
    generation newest;
    names found;
    for (const auto& p : const_cast<checked_job*>(this)->training().all()) {
      if (p.which > newest)
        found.clear();
      newest = std::max(newest, p.which);
      if (p.which == newest)
        found.insert(p.node);
    }
    return found;
  }

  void ends_well() {
    run_for(120s, [this] { return over(); });
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    REQUIRE(over());
    CHECK(verdict()->success);
  }
};

} // namespace

TEST_CASE("good nodes train after a second, and are all there") {
  for (const std::uint32_t nodes : {1u, 2u, 3u, 4u, 7u, 16u}) {
    CAPTURE(nodes);
    checked_job c(nodes);
    c.start_everything();
    c.trains(3s);
    CHECK(c.members() == all_but(nodes, {}));
    c.ends_well();
  }
}

TEST_CASE("a node whose device is broken leaves with the reason, and the others train") {
  checked_job c(4, 3);
  c.devices().broken.insert("n3");
  c.start_everything();
  c.trains(5s);
  CHECK(c.members() == names{"n1", "n2", "n4"});
  REQUIRE(c.outcomes().count("n3") == 1);
  CHECK(c.outcomes().at("n3").reason.find("device 0: it computes wrongly") != std::string::npos);
  c.ends_well();
}

TEST_CASE("a driver that never answers holds up the others as long as one that is slow may") {
  checked_job c(4, 3);
  c.devices().stuck.insert("n2");
  c.start_everything();
  c.trains(15s); // of which a probe may take ten
  CHECK(c.members() == names{"n1", "n3", "n4"});
}

TEST_CASE("a link that is cut costs one of its ends") {
  checked_job c(6, 3);
  c.cut("n2", "n5");
  c.start_everything();
  c.trains(60s);
  auto left = c.members();
  CHECK(left.size() >= 5);
  CHECK((left.count("n2") == 0 || left.count("n5") == 0));
}

TEST_CASE("a node that is cut off from all others is found, whatever its place") {
  for (std::uint32_t nodes = 3; nodes <= (sanitized ? 4 : 9); ++nodes)
    for (std::uint32_t bad = 1; bad <= nodes; ++bad) {
      CAPTURE(nodes);
      CAPTURE(bad);
      checked_job c(nodes, 2);
      const auto name = cluster::node_name_of(bad);
      for (std::uint32_t other = 1; other <= nodes; ++other)
        if (other != bad)
          c.cut(name, cluster::node_name_of(other));
      c.start_everything();
      c.trains(90s);
      CHECK(c.members() == all_but(nodes, {name}));
    }
}

TEST_CASE("two nodes that fail with each other wait for a third, which shows which one it is") {
  checked_job c(3, 2);
  c.cut("n1", "n2");
  c.cut("n2", "n3");
  c.start_master();
  c.start_node("n1");
  c.start_node("n2");
  c.run_for(60s);
  CHECK_FALSE(c.training().training());
  c.start_node("n3");
  c.trains(60s);
  CHECK(c.members() == names{"n1", "n3"});
}

TEST_CASE("a newcomer that is broken does not stop the job") {
  checked_job c(3, 2);
  c.start_master();
  c.start_node("n1");
  c.start_node("n2");
  c.trains(5s);
  const auto processes = c.training().all().size();
  c.devices().broken.insert("n3");
  c.start_node("n3");
  c.run_for(4s);
  CHECK(c.training().all().size() == processes);
  REQUIRE(c.outcomes().count("n3") == 1);
  c.ends_well();
}

TEST_CASE("a newcomer that is good is taken in after a check of all") {
  checked_job c(3, 2);
  c.start_master();
  c.start_node("n1");
  c.start_node("n2");
  c.trains(5s);
  c.start_node("n3");
  c.run_for(10s, [&c] { return c.members().size() == 3; });
  CHECK(c.members().size() == 3);
  c.ends_well();
}

TEST_CASE("whatever crashes during a check, the job starts with the good nodes") {
  const std::vector<std::function<void(checked_job&)>> crashes{
      [](checked_job& c) { c.crash_actor(cluster::master_name(), "network_check"); },
      [](checked_job& c) { c.crash_actor(cluster::master_name(), "recovery"); },
      [](checked_job& c) { c.crash_actor(cluster::master_name(), "membership"); },
      [](checked_job& c) { c.crash_actor("n2", "network_prober"); },
      [](checked_job& c) { c.crash_actor("n2", "uplink"); },
      [](checked_job& c) { c.crash_supervisor("n2", 20ms); },
      [](checked_job& c) {
        c.crash(cluster::master_name(), ending_kind::killed);
        c.run_for(50ms);
        c.start_master();
      },
  };
  for (std::size_t which = 0; which < crashes.size(); ++which)
    for (const auto at : {50ms, 580ms, 650ms, 700ms}) {
      if (sanitized && at != 650ms)
        continue;
      CAPTURE(which);
      CAPTURE(at.count());
      checked_job c(4, 2);
      c.devices().broken.insert("n4");
      c.start_everything();
      c.run_for(at);
      crashes[which](c);
      c.trains(60s);
      CHECK(c.members().count("n4") == 0);
      CHECK(c.members().size() >= 2);
      c.ends_well();
    }
}

TEST_CASE("by seed: no broken node trains, and each good one that the others reach does") {
  for (std::uint64_t seed = 1; seed <= rounds(60); ++seed) {
    random_source chance(seed);
    const auto nodes = static_cast<std::uint32_t>(3 + chance.below(8));
    checked_job c(nodes, 2, seed);
    names broken, cut_off;
    std::string what;
    for (auto faults = chance.below(3); faults > 0 && broken.size() + cut_off.size() + 2 < nodes;
         --faults) {
      const auto name = cluster::node_name_of(static_cast<std::uint32_t>(1 + chance.below(nodes)));
      const auto kind = chance.below(3);
      what += fmt::format(" {}:{}", name, kind);
      if (kind == 0) {
        broken.insert(name);
        c.devices().broken.insert(name);
      } else if (kind == 1) {
        broken.insert(name);
        c.devices().stuck.insert(name);
      } else {
        cut_off.insert(name);
        for (const auto& other : all_but(nodes, {name}))
          c.cut(name, other);
      }
    }
    CAPTURE(seed);
    CAPTURE(nodes);
    CAPTURE(what);
    c.start_everything();
    c.trains(120s);
    names bad = broken;
    bad.insert(cut_off.begin(), cut_off.end());
    CHECK(c.members() == all_but(nodes, bad));
  }
}
