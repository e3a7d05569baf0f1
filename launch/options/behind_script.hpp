#pragma once

#include <string>
#include <vector>

namespace troupe::launch {

/// `command`: the script and its words. A line for people if one of them is an option that only a
/// launcher has: what stands behind the script is the script's. Empty: none is.
std::string misplaced_option(const std::vector<std::string>& command);

} // namespace troupe::launch
