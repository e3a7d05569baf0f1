#pragma once

#include "launch/keeper/keeper_core.hpp"
#include "launch/wiring/launch_facts.hpp"
#include "runtime/os/process/unique_fd.hpp"

namespace troupe::launch {

/// The process of the workers' store. Serves until it is killed, or returns after it has said why
/// it cannot.
void serve_store(const launch_facts& facts, const store_order& order, const os::unique_fd& answer);

} // namespace troupe::launch
