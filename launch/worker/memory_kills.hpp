#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::launch {

/// How often the kernel has killed processes of this process's control group for lack of memory;
/// nothing where it does not count. `root`: where /proc and /sys are.
std::optional<std::uint64_t> memory_kills(const std::string& root = "");

} // namespace troupe::launch
