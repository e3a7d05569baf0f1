#include "tests/rounds.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::sim;

// A node misses its master. Where it is cut off, others have its ranks within a lease, and its own
// workers end soon after; where the master is away, they train on.

namespace {

constexpr std::uint32_t nodes = 8;
const std::string victim = "n4";

struct job : cluster {
  explicit job(std::uint64_t seed) : cluster(options(seed)) {
    all().observers = {checkers::one_world_per_generation(all()), checkers::actors_are_sound(all()),
                       checkers::processes_follow_the_generation(all(), training())};
    start_everything();
    run_for(20s, [this] { return training().training(); });
    REQUIRE(training().training());
    run_for(2s);
  }

  static cluster_options options(std::uint64_t seed) {
    cluster_options o;
    o.seed = seed;
    o.nodes = o.nodes_max = nodes;
    o.nodes_min = 2;
    o.trainers.training = 120s;
    o.trainers.hangs = 1; // the loss of a peer ends no worker: its launcher does
    return o;
  }

  void cut(const std::string& a, const std::string& b) {
    net().hold(a, b);
    net().hold(b, a);
  }
  void mend(const std::string& a, const std::string& b) {
    net().release(a, b);
    net().release(b, a);
  }
  std::vector<std::string> hosts() const {
    std::vector<std::string> all{master_name()};
    for (std::uint32_t n = 1; n <= nodes; ++n)
      all.push_back(node_name_of(n));
    return all;
  }

  /// From now on.
  duration its_workers_end_after() {
    const auto begun = now();
    run_for(60s, [this] { return training().alive_on(victim) == 0; });
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    REQUIRE(training().alive_on(victim) == 0);
    return now() - begun;
  }
  /// No worker has ended meanwhile, and none does.
  void trained_on() {
    run_for(20s);
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    CHECK(training().training());
    CHECK(training().all().size() == nodes);
  }
  void trains_again() {
    run_for(60s, [this] { return training().training() && training().alive() == nodes; });
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    CHECK(training().alive() == nodes);
  }
};

template<class Story>
void by_seeds(Story story) {
  for (std::uint64_t seed = 1; seed <= rounds(10); ++seed) {
    CAPTURE(seed);
    job j(seed);
    story(j);
  }
}

} // namespace

TEST_SUITE("a node that misses its master") {
  TEST_CASE("it is cut off from all: its workers end within 10 s") {
    by_seeds([](job& j) {
      for (const auto& host : j.hosts())
        if (host != victim)
          j.cut(victim, host);
      CHECK(j.its_workers_end_after() < 10s);
      for (const auto& host : j.hosts())
        j.mend(victim, host);
      j.trains_again();
    });
  }

  TEST_CASE("only the way to the master is cut: others have it, and it is told") {
    by_seeds([](job& j) {
      j.cut(victim, j.master_name());
      CHECK(j.its_workers_end_after() < 4s);
      j.mend(victim, j.master_name());
      j.trains_again();
    });
  }

  // For longer than the master forgives, and shorter, with all that the way back may do: some nodes
  // have the master again while others still dial.
  TEST_CASE("the master's machine is away: the others have none either, and train on") {
    for (const auto away : {2s, 4s, 6s, 8s, 10s})
      by_seeds([away](job& j) {
        CAPTURE(away.count());
        for (const auto& host : j.hosts())
          if (host != j.master_name())
            j.cut(j.master_name(), host);
        j.run_for(away);
        for (const auto& host : j.hosts())
          if (host != j.master_name())
            j.mend(j.master_name(), host);
        j.trained_on();
      });
  }

  TEST_CASE("the master stands still") {
    for (const auto still : {3s, 6s, 9s})
      by_seeds([still](job& j) {
        CAPTURE(still.count());
        j.pause(j.master_name());
        j.run_for(still);
        j.resume(j.master_name());
        j.trained_on();
      });
  }

  TEST_CASE("all are cut off from all for 5 s: no worker ends") {
    by_seeds([](job& j) {
      for (const auto& a : j.hosts())
        for (const auto& b : j.hosts())
          if (a != b)
            j.net().hold(a, b);
      j.run_for(5s);
      for (const auto& a : j.hosts())
        for (const auto& b : j.hosts())
          if (a != b)
            j.net().release(a, b);
      j.trained_on();
    });
  }
}
