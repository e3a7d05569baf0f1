#pragma once

#include "diag/progress_host.hpp"
#include "runtime/base/time.hpp"

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::os {

/// Has `troupe-dump` read processes, and collects what it says until its time is over.
///
/// What reads stacks opens the files that a process has mapped; where the server of one is gone,
/// that never ends, and no thread of the node supervisor may be lost to it. A child can be killed.
/// It also takes the memory of its tables of symbols along.
///
/// Blocks for `within` at most, and a moment to end the child. `program`: the file of `troupe`.
diag::dump_result read_in_child(const std::string& program, const std::vector<pid_t>& pids,
                                duration within);

} // namespace troupe::os
