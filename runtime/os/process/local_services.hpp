#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// What a process host tells of its machine.
namespace troupe::os {

struct process_host_options {
  /// Soft limit of open files of the processes; nothing: ours. A launcher that raised its own
  /// passes on what it found, because programs that use select() break when more than 1024 files
  /// may be open.
  std::optional<std::uint64_t> open_files;
  /// Hears where processes live; may be empty.
  log::sink log;
};

/// Opens whichever of stdin, stdout and stderr is closed on /dev/null. Without this, the next file
/// that this process opens takes the number of the closed stream, and workers inherit that file as
/// their stdin, stdout or stderr. Must run before anything else opens a file. `unavailable`, with
/// the reason, where there is no /dev/null.
result<void> open_missing_streams();

/// The soft limit of open files, before and after it was raised.
struct open_files_limit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;
};

/// Raises the soft limit of open files of this process as far as the hard limit and the kernel
/// allow. The caller compares `now` with what it needs.
open_files_limit raise_open_files();

/// A TCP port that is free now on every address of this machine.
result<std::uint16_t> free_port();

/// The wall clock in milliseconds since 1970.
std::int64_t unix_time_ms();

/// At most `limit` bytes of a regular file; nothing if there is none.
std::optional<std::string> read_small_file(const std::string& path, std::size_t limit);

/// Its last `limit` bytes, or all; nothing if it is no regular file.
std::optional<std::string> read_end_of_file(const std::string& path, std::size_t limit);

} // namespace troupe::os
