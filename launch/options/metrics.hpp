#pragma once

#include "runtime/base/result.hpp"
#include "runtime/ports/transport.hpp"

#include <optional>
#include <string>

namespace troupe::launch {

/// "[HOST:]PORT", where metrics are served; an empty host is every address. Nothing: nowhere.
result<std::optional<ports::endpoint>> derive_metrics(const std::string& listen);

} // namespace troupe::launch
