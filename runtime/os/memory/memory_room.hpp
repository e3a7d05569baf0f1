#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::os {

/// How much more memory this process may use, and what sets that bound.
struct memory_room {
  std::uint64_t bytes = 0;
  std::string bound; ///< in words, with the file that says so
  /// A folder that all processes under the same bound can open.
  std::filesystem::path shared = "/";
};

/// The least of what the machine has available (MemAvailable of /proc/meminfo) and what the control
/// groups above this process leave (memory.max and memory.current, or their twins of version 1;
/// file pages that can be dropped count as free). `root` stands in for "/" in tests.
result<memory_room> find_memory_room(const std::filesystem::path& root = "/");

} // namespace troupe::os
