#pragma once

#include "runtime/base/result.hpp"

#include <string>

namespace troupe::launch {

/// The file of the program that runs here.
std::string own_program();

/// The directory whose modules have a Python worker report its progress: in `../libexec/troupe` as
/// seen from this program. Empty where the program was installed without it.
std::string worker_hooks();

/// The library that times calls of CUDA and NCCL, found in the same way. Error: it is not there.
result<std::string> trace_library();

} // namespace troupe::launch
