#pragma once

#include "launch/keeper/sweep_core.hpp"

namespace troupe::launch {

/// Looks at a child that the keeper does not know. Nothing that is read here waits for the process:
/// not its command line, for which the kernel takes a lock that a process may hold for ever. Where
/// it cannot be seen, as when it has just ended, the fields say as little as possible.
left_process look_at(pid_t pid);

} // namespace troupe::launch
