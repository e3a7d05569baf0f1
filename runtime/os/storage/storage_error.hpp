#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/storage/file_ops.hpp"

#include <cstdint>
#include <string>

namespace troupe::os {

/// What could not be done to a file, why, and what to do about it, in one line. `number` is an
/// errno.
error storage_error(const char* what, const std::string& path, int number);

/// The same for a file of so many bytes that could not be written: says how many are missing.
error write_error(file_ops& files, const std::string& path, std::uint64_t bytes, int number);

/// "1.5 GiB"
std::string in_words(std::uint64_t bytes);

} // namespace troupe::os
