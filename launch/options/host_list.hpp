#pragma once

#include "runtime/base/result.hpp"

#include <string>
#include <vector>

namespace troupe::launch {

/// The hosts of a list as Slurm writes them, in order: "gpu[001-003,7],login,r[1-2]n[0-3]". Numbers
/// keep their leading zeros; the brackets on the right run fastest. A plain list, "a,b", is one
/// too. `invalid` with what is wrong; nothing is expanded before it is known to be at most
/// limits::nodes_max names.
result<std::vector<std::string>> parse_host_list(const std::string& text);

} // namespace troupe::launch
