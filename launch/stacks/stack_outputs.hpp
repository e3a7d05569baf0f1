#pragma once

#include "launch/stacks/dump_directory.hpp"

#include <string>

namespace troupe::launch {

/// Writes py_stack, py_stack.svg, cpp_stack, cpp_stack.svg and stacks.json into `directory`, which
/// is made if need be. Each file is replaced whole or not at all.
result<void> write_stacks(const diag::merged_stacks& stacks, const std::string& directory);

/// What a person is told when it is done: what was written where, and what is missing.
std::string report_of(const gathered_stacks& all, const std::string& directory);

} // namespace troupe::launch
