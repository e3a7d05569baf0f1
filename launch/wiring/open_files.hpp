#pragma once

#include "launch/options/options.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::launch {

/// How many files a launcher has open at the most. Checkpoint memory takes most of them, and all
/// processes of the launcher inherit it; without this check the first call that finds no free
/// descriptor decides what the user gets to read.
std::uint64_t open_files_needed(const launcher_options& o);

/// What is wrong with a limit of `allowed` open files, in one line: what is needed, what is there,
/// and what to do.
std::optional<std::string> open_files_validation_error(const launcher_options& o,
                                                       std::uint64_t allowed);

} // namespace troupe::launch
