#include "tests/actors/agent_world.hpp"
#include "tests/actors/decision_world.hpp"
#include "tests/actors/membership_world.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors::testing;

namespace {

/// What a world complained about, or nothing.
template<class World, class After>
std::string error_text(std::uint64_t seed, int strikes, After after) {
  try {
    World world(seeded(seed));
    for (int i = 0; i < strikes; ++i)
      world.strike();
    after(world);
    return {};
  } catch (const invariant_broken& e) {
    return e.what();
  }
}

constexpr auto peace = [](auto& world) { world.let_be(); };
constexpr auto nothing_more = [](auto&) {};

} // namespace

/// Whatever happens, in whatever order; the worlds say what must hold. The fuzz targets drive the
/// same.
TEST_SUITE("worlds") {
  TEST_CASE("membership never announces what cannot be") {
    for (std::uint64_t seed = 0; seed < rounds(1'000); ++seed) {
      CAPTURE(seed);
      REQUIRE(error_text<membership_world>(seed, 300, nothing_more) == "");
    }
  }

  TEST_CASE("an agent never runs two generations at once, nor is ready before all is clean") {
    for (std::uint64_t seed = 0; seed < rounds(3'000); ++seed) {
      CAPTURE(seed);
      REQUIRE(error_text<agent_world>(seed, 200, peace) == "");
    }
  }

  TEST_CASE(
      "the planner, its members and their nodes never contradict the journal, and the job ends") {
    decision_world::tally all;
    for (std::uint64_t seed = 0; seed < rounds(2'500); ++seed) {
      CAPTURE(seed);
      REQUIRE(error_text<decision_world>(seed, 1'500, [&all](decision_world& world) {
                const auto before = world.count();
                world.let_be();
                all.sealed += before.sealed;
                all.counted += before.counted;
                all.falls += before.falls;
                all.evicted += before.evicted;
                all.successes += before.successes;
                all.failures += before.failures;
              }) == "");
    }
    // All of it has happened, and often.
    MESSAGE("sealed " << all.sealed << ", counted " << all.counted << ", falls " << all.falls
                      << ", evicted " << all.evicted << ", successes " << all.successes
                      << ", failures " << all.failures);
    CHECK(all.sealed > rounds(1'500));
    CHECK(all.counted > rounds(200));
    CHECK(all.falls > rounds(1'500));
    CHECK(all.evicted > rounds(100));
    CHECK(all.successes > rounds(100));
    CHECK(all.failures > rounds(100));
  }
}
