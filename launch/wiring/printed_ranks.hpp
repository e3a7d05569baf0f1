#pragma once

#include "launch/options/topology.hpp"
#include "runtime/base/result.hpp"

#include <string>

namespace troupe::launch {

/// Which node of a file gets which rank, and what that is worth, without a run. The nodes are taken
/// in the order of the file, as if they came in it. The error is one line that names the file.
result<std::string> printed_ranks(const ranks_request& wanted);

} // namespace troupe::launch
