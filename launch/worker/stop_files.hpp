#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"

#include <string>

namespace troupe::launch {

/// Files that ask workers to save and end (`--elastic-mode ucp`). One that is left would end the
/// next generation after its first step, so both are removed before workers start.
struct stop_files {
  /// This run's, which workers find in TROUPE_STOP_FILE; empty: none.
  std::string own;
  /// Where scripts written for DLRover look, of whatever job they are; empty: nowhere.
  std::string usual;
};

inline constexpr auto usual_stop_file = "/tmp/stop";

/// `invalid` if the run's own is there and stays. The usual one may be another user's, and must not
/// keep a job from starting: that it stays is told, as a script that looks for it ends early.
result<void> remove_stop_files(const stop_files& files, const log::sink& log);

} // namespace troupe::launch
