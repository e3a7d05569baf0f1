#pragma once

#include "diag/stacks/merged_stacks.hpp"
#include "runtime/base/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// A directory of dumps, read and merged.
///
/// Dumps are written while things go wrong: some are cut off, some ranks wrote none, and files of
/// an earlier hang lie beside them. What can be read is merged, and all else is named.
namespace troupe::launch {

struct gathered_stacks {
  diag::merged_stacks stacks;
  std::size_t files = 0; ///< that were read, at least in part
  /// One line for each file that could not be read whole, by name, and one for each thing that is
  /// odd about them all.
  std::vector<std::string> remarks;
};

/// Reads every dump in `directory` with as many threads as help, at most `threads_max`. An error if
/// there is nothing to show.
result<gathered_stacks> gather_stacks(const std::string& directory, unsigned threads_max);

} // namespace troupe::launch
