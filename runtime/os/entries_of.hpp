#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace troupe::os {

/// What is in a directory; none if it cannot be read. Entries that come or go meanwhile may be
/// missing: the iterator of a `for` would throw when another process removes the directory.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator at(directory, gone), end; !gone && at != end;
       at.increment(gone))
    found.push_back(at->path());
  return found;
}

} // namespace troupe::os
