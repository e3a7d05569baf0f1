#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace troupe::os {

/// What is in a directory; none if it cannot be read. Entries that come or go meanwhile may be
/// missing: the iterator of a `for` would throw when another process removes the directory. An
/// entry knows its type from the listing, so asking for that costs no system call.
inline std::vector<std::filesystem::directory_entry>
entries_of(const std::filesystem::path& directory) {
  std::vector<std::filesystem::directory_entry> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator at(directory, gone), end; !gone && at != end;
       at.increment(gone))
    found.push_back(*at);
  return found;
}

} // namespace troupe::os
