#include "ckpt/copies/testing/target_world.hpp"

/// The bytes are what fate chooses; what must hold throws, which ends the process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  actors::testing::bytes_of_fate bytes(data, size);
  ckpt::testing::target_world world([&bytes](std::uint64_t bound) { return bytes.choose(bound); });
  while (!bytes.exhausted())
    world.strike();
  return 0;
}
