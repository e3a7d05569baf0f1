// The fuzz target's world (tests/fuzz/fuzz_diagnosis_cores.cpp) from seeds.

#include "tests/actors/diagnosis_world.hpp"

#include <doctest/doctest.h>

using namespace troupe::actors::testing;

TEST_CASE("whatever processes write and looks find, what must hold does") {
  std::size_t verdicts = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    diagnosis_world world(seeded(seed));
    for (int i = 0; i < 1'500; ++i)
      world.strike();
    verdicts += world.verdicts();
  }
  // Else nothing of this was about verdicts.
  CHECK(verdicts > 100);
}
