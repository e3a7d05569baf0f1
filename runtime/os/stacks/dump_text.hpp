#pragma once

#include "runtime/os/stacks/dump.hpp"

#include <string>

namespace troupe::os {

/// A process for people to read: what the kernel says of it, and then each thread with its Python
/// frames and its native ones, innermost first. `was_watched`: whether it moves is known.
std::string text_of(const process_dump& dump, bool was_watched);

/// The same of what is known without the kernel's facts.
std::string text_of(const diag::process_stacks& stacks);

} // namespace troupe::os
