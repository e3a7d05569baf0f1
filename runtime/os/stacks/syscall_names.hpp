#pragma once

#include <string>

namespace troupe::os {

/// "futex" for the number of a system call of this kind of machine; "system call 9999" for one that
/// is not known.
std::string syscall_name(long number);

} // namespace troupe::os
