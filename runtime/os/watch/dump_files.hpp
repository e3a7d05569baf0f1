#pragma once

#include "diag/progress_host.hpp"
#include "runtime/base/result.hpp"

#include <string>

namespace troupe::os {

/// Writes what a dump has read, a file for each rank, where xpu_timer would write its own
/// (XPU_TIMER_TIMELINE_PATH): `directory`/rank-00002-of-00004.stacks, which actor-stacks merges.
/// The directory is made if need be; files of an earlier dump are replaced. Processes whose world
/// is not known are left out. May wait for a disk. `unavailable`: the first file that cannot be
/// written.
result<void> keep_dumps(const std::string& directory, const diag::dump_result& read);

} // namespace troupe::os
