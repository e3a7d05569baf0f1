#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::os {

struct open_files {
  std::set<std::uint64_t> sockets;  ///< by inode
  std::vector<std::string> written; ///< ways to the files that are open for writing, below /proc
};
/// Of at most limits::stacks_descriptors_max descriptors; none if they may not be seen.
open_files open_files_of(pid_t pid);

/// The mount points, as the process sees them, of file systems that have less than
/// limits::stacks_full_below left: that of its current directory, of its temporary files (TMPDIR,
/// or /tmp) and of `written`.
std::vector<std::string> full_file_systems(pid_t pid, const std::vector<std::string>& written);

} // namespace troupe::os
