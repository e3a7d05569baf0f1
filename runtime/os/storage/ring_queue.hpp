#pragma once

#include "runtime/os/storage/file_ops.hpp"

namespace troupe::os {

/// Writes under way in the kernel's own queue (io_uring). Nothing, and why, where there is none:
/// an old kernel, or a container that forbids it.
std::unique_ptr<write_queue> ring_queue(unsigned depth, std::string& why_not);

} // namespace troupe::os
