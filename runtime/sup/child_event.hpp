#pragma once

#include "runtime/base/log.hpp"
#include "runtime/sup/supervisor_core.hpp"

#include <string>

namespace troupe::sup::detail {

/// What a supervisor at this path says about one of its children: "child_restarted" and the like,
/// naming supervisor, context, reason and offender.
log::event child_event(const std::string& supervisor, const effect::report& what);

} // namespace troupe::sup::detail
