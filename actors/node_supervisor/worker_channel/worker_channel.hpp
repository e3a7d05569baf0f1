#pragma once

#include "actors/node_supervisor/worker_channel/worker_channel_core.hpp"
#include "diag/progress_host.hpp"
#include "runtime/ports/worker_links.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// Talks with this node's training processes: see worker_channel_core.hpp. State: none; the
/// processes dial each new one and say again what has happened once, and the agent is asked which
/// they are.
namespace troupe::actors::worker_channel {

using handle = sup::protocol<
    // From the agent.
    sup::tell<messages::msg<messages::Watched>>,
    // From the master's diagnosis, through the uplink.
    sup::tell<messages::msg<messages::StacksWanted>>>;

handle start(sup::context& ctx, const std::shared_ptr<ports::worker_links>& links,
             const std::shared_ptr<diag::progress_host>& stacks, const node_addresses& at);

} // namespace troupe::actors::worker_channel
