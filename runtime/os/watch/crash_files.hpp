#pragma once

#include "diag/progress_host.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::os {

/// Writes the stacks of crashed processes below `directory`, as
/// fatal/<generation>/rank-00002-of-00004.stacks (what actor-stacks merges) and .txt (for people),
/// and says of each process where it was hit. `read`: what came of them within that time. May wait
/// for a disk.
std::vector<diag::crash_report> keep_crashes(const std::string& directory, std::uint64_t generation,
                                             const std::vector<diag::crashed_process>& processes,
                                             diag::dump_result read, duration within);

} // namespace troupe::os
