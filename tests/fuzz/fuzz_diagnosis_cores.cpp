#include "tests/actors/diagnosis_world.hpp"

/// The bytes are what processes write into their pages, what looks find and which message comes
/// next; what must hold throws, which ends the process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::actors::testing;
  bytes_of_fate bytes(data, size);
  diagnosis_world world([&bytes](std::uint64_t bound) { return bytes.choose(bound); });
  while (!bytes.exhausted())
    world.strike();
  return 0;
}
