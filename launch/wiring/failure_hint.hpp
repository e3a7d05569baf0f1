#pragma once

#include "launch/wiring/failure_summary.hpp"

#include <string>

namespace troupe::launch {

/// What to do about a failure whose cause can be read off its signal, its traceback or the end of
/// its stderr; one line. Empty: the cause is not one of these, and a guess would mislead.
std::string hint_for(const worker_failure& f);

} // namespace troupe::launch
