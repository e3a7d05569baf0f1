#pragma once

#include "diag/process_look.hpp"

#include <string>

namespace troupe::actors {

/// Where a process stands, in words: its own place, or that of the child which keeps it there, if
/// it waits for input.
std::string standing_place(const diag::process_look& look, bool waits_for_input);

/// By the kernel's word, or by where it is: Python's own debuggers trace nothing.
bool is_in_debugger(const diag::process_look& look);

} // namespace troupe::actors
