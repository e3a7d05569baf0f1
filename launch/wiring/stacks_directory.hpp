#pragma once

#include "diag/stacks_archive.hpp"

#include <memory>
#include <string>

namespace troupe::launch {

/// Stacks of a hang as files below a directory: `<directory>/<number>/py_stack.svg` and the others
/// that actor-stacks writes. Done on a thread of its own.
std::shared_ptr<diag::stacks_archive> stacks_directory(const std::string& directory);

} // namespace troupe::launch
