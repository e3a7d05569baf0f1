#pragma once

#include <cstddef>

/// The bounds of what is read of a worker.
namespace troupe::limits {

/// A worker's error file; a longer one is not read as one.
inline constexpr std::size_t error_file_max = 1u << 20;

} // namespace troupe::limits
