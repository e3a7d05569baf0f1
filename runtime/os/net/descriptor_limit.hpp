#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>

namespace troupe::os {

/// Raises this process's limit of open files to `wanted`, or as far as the system lets us; answers
/// what it is now. A link needs one descriptor, so a master wants some more than its nodes.
result<std::uint64_t> raise_descriptor_limit(std::uint64_t wanted);

} // namespace troupe::os
