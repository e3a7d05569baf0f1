#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <string>
#include <vector>

namespace troupe::launch::doctor {

struct told {
  std::string output; ///< both streams, in the order in which they came; the beginning of it
  bool in_time = true;
};

/// Runs a program and answers what it prints. After `within` it is killed with all that it has
/// started, unless that has left its process group. `invalid` if it cannot be started.
result<told> ask(const std::vector<std::string>& command, duration within);

} // namespace troupe::launch::doctor
