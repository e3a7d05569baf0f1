#include "runtime/sup/testing/core_world.hpp"

#include <cstddef>
#include <cstdint>

/// The bytes are fate: each decides once. What a supervisor must never do throws, and so ends the
/// run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t used = 0;
  // Two bytes a choice: times up to a few seconds are drawn in milliseconds.
  const auto byte = [&]() -> std::uint64_t { return used < size ? data[used++] : 0; };
  troupe::sup::core_world world([&byte](std::uint64_t bound) {
    const std::uint64_t wide = bound > 256 ? byte() << 8 : 0;
    return (wide | byte()) % bound;
  });
  while (used < size)
    world.strike();
  world.let_be();
  return 0;
}
