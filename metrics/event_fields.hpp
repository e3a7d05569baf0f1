#pragma once

#include "runtime/base/log.hpp"

#include <optional>
#include <variant>

namespace troupe::metrics {

/// Nothing: the event has no field of that name, or of another type.
template<class T>
std::optional<T> field(const log::event& e, const char* name) {
  for (const auto& [key, content] : e.fields)
    if (key == name)
      if (const auto* found = std::get_if<T>(&content))
        return *found;
  return std::nullopt;
}

} // namespace troupe::metrics
