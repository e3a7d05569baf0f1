#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/ports/process.hpp"

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace troupe::os {

/// Whose child a new process is.
enum class parent : std::uint8_t {
  us,
  ours, ///< Our own parent's: it survives us, dies with that, and is that one's to reap.
};

struct spawned {
  pid_t pid = 0;
  unique_fd pidfd;
};

/// Starts a process as process_host promises and returns once it has exec'd. Costs the same
/// whatever the size of this process (it borrows our memory until exec, as vfork does).
/// `open_files` is its soft limit of open files; nothing: ours.
///
/// The calling thread must have all signals blocked: a handler would run in the child, on our
/// memory. And it must live as long as its children should: what Linux calls the parent's death is
/// the death of the thread that cloned. (With
/// parent::ours that is the thread that forked us.)
result<spawned> spawn(const ports::process_spec& spec, std::optional<std::uint64_t> open_files,
                      parent whose = parent::us);

/// The end of a child, if it has come. Reaps it; nothing while it lives.
std::optional<ports::exit_status> reap(int pidfd);

/// A pidfd of a child of ours that we have not reaped, or an empty one when we are out of file
/// descriptors.
unique_fd open_pidfd(pid_t pid);

} // namespace troupe::os
