#pragma once

#include "runtime/sup/context.hpp"
#include "runtime/sup/spec.hpp"

#include <caf/actor.hpp>

#include <functional>
#include <memory>

namespace troupe::sup::detail {

/// Starts the supervisor of a validated tree. It starts its children by itself; `on_up` is called,
/// from it, once all are up for the first time. If one cannot be started it stops the others and
/// ends with the error.
caf::actor spawn_supervisor(const tree& spec, const context& ctx,
                            const std::function<void()>& on_up);

} // namespace troupe::sup::detail
