#pragma once

#include "runtime/base/time.hpp"
#include "runtime/os/stacks/elf_files.hpp"
#include "runtime/os/stacks/unwinder.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::os {

struct native_stacks {
  std::map<pid_t, unwinder::unwound> threads;
  std::vector<std::string> missing; ///< of the process as a whole
  duration stopped_longest{};       ///< of its threads
  duration stopped_in_all{};        ///< all its threads together
};

/// The native stacks of `threads` of a process. Each thread stops for as long as a copy of its
/// stack takes, some tens of microseconds; a system call that it waits in begins again, or ends
/// with EINTR if it is one of those that do (epoll_wait, sigtimedwait; see signal(7)).
native_stacks read_native_stacks(pid_t pid, const std::vector<pid_t>& threads,
                                 const std::vector<mapping>& mappings, elf_files& files);

} // namespace troupe::os
