#pragma once

#include "actors/master/recovery/elasticity.hpp"
#include "runtime/base/result.hpp"

#include <string>

namespace troupe::launch {

/// The "elasticity" section of a DeepSpeed config, as JSON. The error says in one line what is
/// wrong with it.
result<actors::elasticity> read_elasticity(const std::string& json,
                                           actors::elasticity_config::variant which);

/// From a file.
result<actors::elasticity> load_elasticity(const std::string& path,
                                           actors::elasticity_config::variant which);

} // namespace troupe::launch
