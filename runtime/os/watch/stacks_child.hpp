#pragma once

#include "diag/progress_host.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::os {

struct dumped_process {
  pid_t pid = 0;
  std::uint32_t rank = 0;
};

/// Has `troupe-dump` read processes, and their children if that is wanted, and collects what it
/// says until its time is over.
///
/// What reads stacks opens the files that a process has mapped; where the server of one is gone,
/// that never ends, and no thread of the node supervisor may be lost to it. A child can be killed.
/// It also takes the memory of its tables of symbols along.
///
/// Blocks for `within` at most, and a moment to end the child. `program`: the file of `troupe`.
diag::dump_result read_in_child(const std::string& program,
                                const std::vector<dumped_process>& processes, bool with_children,
                                duration within);

} // namespace troupe::os
