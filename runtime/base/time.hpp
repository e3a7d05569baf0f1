#pragma once

#include <chrono>
#include <string>

namespace troupe {

/// Monotonic time. It is always an argument: cores never ask for it, and in a simulation it is
/// simulated.
using instant = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

using namespace std::chrono_literals;

/// Milliseconds with a fraction, for reports.
double milliseconds_of(duration d);

/// For people: "850 µs", "12.3 ms", "4.2 s", "3 min 20 s".
std::string in_words(duration d);

} // namespace troupe
