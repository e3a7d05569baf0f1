#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/ports/process.hpp"

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace troupe::os {

/// Starts a process as process_host promises and returns its pid once it has exec'd. Costs the same
/// whatever the size of this process (it borrows our memory until exec, as vfork does).
/// `open_files` is its soft limit of open files; nothing: ours. `group` is the open directory of a
/// control group that it belongs to from its first moment, if it can be put there; -1: ours.
///
/// It is our parent's child: it survives us, dies with the parent (to be precise: with that thread
/// of the parent that forked us), and is the parent's to reap, also if it could not exec.
///
/// The calling thread must have all signals blocked: a handler would run in the child, on our
/// memory.
result<pid_t> spawn(const ports::process_spec& spec, std::optional<std::uint64_t> open_files,
                    int group = -1);

} // namespace troupe::os
