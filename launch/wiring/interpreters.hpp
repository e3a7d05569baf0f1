#pragma once

#include "launch/options/interpreter.hpp"

#include <map>
#include <string>

namespace troupe::launch {

/// What the environment variables and the directory of this program lead to. `program` is argv[0]:
/// a path, or a name that is on PATH.
pythons_found find_pythons(const std::map<std::string, std::string>& environment,
                           const std::string& program);

} // namespace troupe::launch
