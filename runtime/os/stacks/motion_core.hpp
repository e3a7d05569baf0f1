#pragma once

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

enum class motion {
  unknown, ///< fewer than two samples, or no Python in it
  moves,   ///< a stack changed, or bytes were read or written
  sleeps,  ///< nothing changed, and it used no processor
  spins,   ///< nothing changed in what it executes, and it used a processor
  stopped, ///< by a signal or a debugger
};

std::string_view words_of(motion m);

/// Compares functions, not lines: a loop within one function that goes nowhere changes lines all
/// the time. So one that waits by asking again and again in a loop of one function is said to spin.
motion motion_of(const std::vector<motion_sample>& samples, duration apart);

} // namespace troupe::os
