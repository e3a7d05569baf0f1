#pragma once

#include "runtime/base/result.hpp"

#include <map>
#include <string>
#include <vector>

/// MindCluster's words about recovery, as a launcher gets them: an option, and variables of its
/// jobs' containers. None of them chooses yet how a job recovers, so each is told.
namespace troupe::launch {

/// A line for `--recover-strategy` (empty: not given), and one for each variable that is set.
/// Error: a value that is not known.
result<std::vector<std::string>>
recovery_remarks(const std::string& strategy,
                 const std::map<std::string, std::string>& environment);

/// `--recover-strategy`, for any program that takes it.
result<void> check_recover_strategy(const std::string& strategy);

} // namespace troupe::launch
