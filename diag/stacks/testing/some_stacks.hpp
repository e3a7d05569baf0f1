#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/random.hpp"

#include <string>
#include <vector>

/// Processes for tests.
namespace troupe::diag::testing {

/// A stack by the names of its functions, the outermost first; all in one source, at `line`.
inline std::vector<stack_frame> stack(const std::vector<std::string>& outermost_first,
                                      std::uint32_t line = 0) {
  std::vector<stack_frame> out;
  for (auto f = outermost_first.rbegin(); f != outermost_first.rend(); ++f)
    out.push_back({*f, "train.py", line});
  return out;
}

inline process_stacks process(std::uint32_t rank, std::uint32_t world,
                              const std::vector<std::string>& python, char state = 'S') {
  process_stacks p;
  p.rank = rank;
  p.world_size = world;
  p.threads.push_back({rank + 1000, "python", state, {}, stack(python, 7), false, {}});
  return p;
}

/// A process of chance, whose stacks have beginnings in common with others'.
inline process_stacks some_process(random_source& chance, std::uint32_t rank, std::uint32_t world) {
  const auto some_stack = [&chance] {
    std::vector<stack_frame> s;
    for (auto frames = chance.below(6); frames > 0; --frames)
      s.push_back({"f" + std::to_string(chance.below(3)), chance.chance(0.5) ? "a.py" : "",
                   static_cast<std::uint32_t>(chance.below(8))});
    return s;
  };
  process_stacks p;
  p.rank = rank;
  p.world_size = world;
  p.pid = chance.below(70'000);
  p.role = chance.chance(0.2) ? "data loader worker 1" : "";
  p.python_version = chance.chance(0.5) ? "3.11.2" : "";
  for (auto threads = chance.below(4); threads > 0; --threads)
    p.threads.push_back({chance.below(1'000), "t", "RSD?"[chance.below(4)], some_stack(),
                         some_stack(), chance.chance(0.1),
                         chance.chance(0.1) ? "no registers" : ""});
  if (chance.chance(0.2))
    p.missing.emplace_back("no symbols of libc.so.6");
  return p;
}

} // namespace troupe::diag::testing
