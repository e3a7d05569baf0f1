#pragma once

#include "actors/node_supervisor/hang_watchdog/hang_watchdog_core.hpp"
#include "diag/progress_host.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// Watches how far this node's training processes are: see hang_watchdog_core.hpp. State: comes
/// back from the pages, which outlive it, and from the agent, which is asked what runs.
namespace troupe::actors::hang_watchdog {

using handle = sup::protocol<
    // From the agent.
    sup::tell<messages::msg<messages::Watched>>,
    // From the master's diagnosis, through the uplink.
    sup::tell<messages::msg<messages::ProgressWanted>>,
    sup::tell<messages::msg<messages::StacksWanted>>, sup::tell<messages::msg<messages::Diagnosed>>,
    sup::tell<messages::msg<messages::Cleared>>,
    // From the uplink.
    sup::tell<messages::msg<messages::MasterLinked>>>;

handle start(sup::context& ctx, const node_name& node, const watch_policy& policy,
             const std::shared_ptr<diag::progress_host>& host, const node_addresses& at);

} // namespace troupe::actors::hang_watchdog
