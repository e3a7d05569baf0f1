#pragma once

#include <string>

namespace troupe::os {

/// "futex" for the number of a system call that a process may wait in; "system call 999" for one
/// that is not known.
std::string syscall_name(long number);

} // namespace troupe::os
