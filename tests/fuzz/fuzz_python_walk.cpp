#include "runtime/base/invariant.hpp"
#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/python_walk_core.hpp"
#include "runtime/os/stacks/testing/fake_python.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// The memory of an interpreter, changed in any way: reading it ends, within its bounds. The first
/// byte says of which version, or that the rest is what a runtime says of itself; then come pairs
/// of a place and what is there instead.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  using namespace troupe::os;
  if (size == 0)
    return 0;
  if (data[0] % 6 == 5) {
    fake_memory memory;
    memory.bytes.assign(data + 1, data + size);
    memory.bytes.resize(std::max<std::size_t>(memory.bytes.size(), 4'096));
    std::memcpy(memory.bytes.data(), "xdebugpy", 8);
    if (const auto described = layout_at(memory, fake_memory::base))
      (void)walk_python(memory, fake_memory::base, described->layout);
    return 0;
  }
  auto python = two_threads(8 + data[0] % 5);
  struct {
    std::uint32_t place;
    std::uint64_t value;
  } change{};
  constexpr std::size_t each = sizeof change.place + sizeof change.value;
  for (std::size_t at = 1; at + each <= size; at += each) {
    std::memcpy(&change.place, data + at, sizeof change.place);
    std::memcpy(&change.value, data + at + sizeof change.place, sizeof change.value);
    // Small values are places in the memory.
    const auto space = python.memory.bytes.size();
    if (change.value < (1u << 24))
      change.value = fake_memory::base + change.value % space;
    python.memory.put(fake_memory::base + change.place % (space - sizeof change.value),
                      change.value);
  }
  const auto found = walk_python(python.memory, python.runtime, python.layout);
  invariant(found.threads.size() <= limits::stacks_threads_max, "more threads than the bound");
  for (const auto& t : found.threads)
    invariant(t.frames.size() <= limits::stacks_frames_max, "more frames than the bound");
  return 0;
}
