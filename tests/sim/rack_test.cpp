#include "tests/rounds.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::sim;

// A rack is lost: half of 64 nodes, at once or one after the other. The job pays for it once.

namespace {

constexpr std::uint32_t nodes = 64, in_the_rack = 32;

class generation_counter final : public observer {
 public:
  void recorded(const messages::any_msg& record) override {
    proposed += record.is<messages::GenerationProposed>() ? 1 : 0;
    sealed += record.is<messages::GenerationSealed>() ? 1 : 0;
  }

  unsigned proposed = 0;
  unsigned sealed = 0;
};

struct job : cluster {
  job(std::uint64_t seed, std::uint32_t nodes_max) : cluster(options(seed, nodes_max)) {
    all().observers =
        checkers::all(all(), training(), 0, {in_the_rack, nodes_max, 1, {}}, limits::lease);
    all().observers.push_back(counted);
    start_everything();
    run_for(20s, [this] { return training().training(); });
    REQUIRE(training().training());
    REQUIRE(counted->sealed == 1);
  }

  static cluster_options options(std::uint64_t seed, std::uint32_t nodes_max) {
    cluster_options o;
    o.seed = seed;
    o.nodes = nodes;
    o.nodes_min = in_the_rack;
    o.nodes_max = nodes_max;
    // What the rack costs may be counted against no budget.
    o.max_restarts = 0;
    o.trainers.training = 60s;
    return o;
  }

  /// The first half of the nodes, each that much later than the one before.
  void loses_its_rack(ending_kind how, duration apart) {
    for (std::uint32_t i = 0; i < in_the_rack; ++i)
      all().events.in(i * apart, [this, i, how] { crash(node_name_of(i + 1), how); });
    run_for(10s);
  }

  /// With one new world, after at most so many proposals: one that is not sealed starts no worker.
  void has_paid_once(unsigned proposals) {
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    CHECK(training().training());
    CHECK(counted->sealed == 2);
    CHECK(counted->proposed <= 1 + proposals);
  }

  const std::shared_ptr<generation_counter> counted = std::make_shared<generation_counter>();
};

void lose_a_rack(ending_kind how, duration apart, unsigned proposals = 1) {
  for (const std::uint32_t nodes_max : {nodes, in_the_rack})
    for (std::uint64_t seed = 1; seed <= rounds(3); ++seed) {
      CAPTURE(nodes_max);
      CAPTURE(seed);
      job j(seed, nodes_max);
      j.loses_its_rack(how, apart);
      j.has_paid_once(proposals);
    }
}

} // namespace

TEST_SUITE("a rack is lost") {
  TEST_CASE("its launchers are killed at the same moment") {
    lose_a_rack(ending_kind::killed, {});
  }
  TEST_CASE("its power fails at the same moment, so its leases run out one after the other") {
    lose_a_rack(ending_kind::power_cut, {});
  }
  TEST_CASE("its launchers are killed within two seconds") {
    lose_a_rack(ending_kind::killed, 60ms);
  }
  TEST_CASE("its power fails from node to node within two seconds") {
    // The planner hears of the first loss alone, a lease before the last node is silent.
    lose_a_rack(ending_kind::power_cut, 60ms, 3);
  }
}
