#pragma once

#include "diag/stacks/process_stacks.hpp"

#include <string>

namespace troupe::diag {

/// Where the signal has hit a thread, for people: "strlen() at crash.py:12 (parse)". The native
/// function is the one below the outermost handler, without those that only raise a signal (abort,
/// raise), and the Python frame is the innermost one. Empty: neither is known.
std::string fault_place(const thread_stacks& thread);

} // namespace troupe::diag
