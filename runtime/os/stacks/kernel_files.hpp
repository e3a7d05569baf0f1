#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/stacks/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace troupe::os {

/// As much of a file of the kernel; empty if it cannot be read. With bound, since the other process
/// decides how long some of them are.
std::string kernel_text(const std::string& path,
                        std::size_t bytes_max = limits::stacks_kernel_text_max);
std::string first_line_of(const std::string& path);

/// What /proc/PID/stat or /proc/PID/task/TID/stat says.
struct thread_stat {
  std::string name;
  char state = '?';
  std::uint64_t cpu_ticks = 0; ///< in user and in kernel mode together
  std::uint64_t started = 0;   ///< in ticks after boot; with the pid it names a process for good
  bool exits = false;          ///< it is on its way out of the kernel (PF_EXITING)
};
std::optional<thread_stat> parse_stat(std::string_view text);
std::optional<thread_stat> stat_of(const std::string& directory);

/// Its threads, the main one first, at most limits::stacks_threads_max.
std::vector<pid_t> threads_of(pid_t pid);

struct mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  bool is_executable = false, is_writable = false;
  std::uint64_t device = 0, inode = 0;
  std::string path; ///< empty for memory without a file; "[stack]" and the like
};
/// Lines that are none are passed over.
std::vector<mapping> parse_mappings(std::string_view text);
result<std::vector<mapping>> mappings_of(pid_t pid);

} // namespace troupe::os
