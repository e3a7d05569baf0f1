#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/stacks/python_walk_core.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::os {

/// What a process was seen to do at one moment, as far as tells whether it moves.
struct motion_sample {
  std::uint64_t started = 0; ///< a pid that was given to another process is no motion
  duration cpu{};
  std::optional<std::uint64_t> bytes; ///< read and written so far
  char state = '?';
  std::vector<python_thread> threads;
};

using diag::motion;

std::string_view words_of(motion m);

/// Compares functions, not lines: a loop within one function that goes nowhere changes lines all
/// the time. So one that waits by asking again and again in a loop of one function is said to spin.
motion motion_of(const std::vector<motion_sample>& samples, duration apart);

} // namespace troupe::os
