#pragma once

#include "actors/master/recovery/recovery_core.hpp"
#include "runtime/ports/cluster.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"
#include "runtime/sup/report.hpp"

#include <functional>
#include <memory>

namespace troupe::actors {
struct master_addresses;
}

/// The planner: see recovery_core.hpp. Its plans are carried out below `job`. State: comes back
/// from the journal, then from the nodes as they return.
namespace troupe::actors::recovery {

using handle = sup::protocol<
    // From membership: which nodes are there.
    sup::tell<messages::msg<messages::NodePresent>>, sup::tell<messages::msg<messages::NodeAway>>,
    sup::tell<messages::msg<messages::NodeLost>>,
    // From the generation that is up.
    sup::tell<messages::msg<messages::Sealed>>, sup::tell<messages::msg<messages::Running>>,
    sup::tell<messages::msg<messages::Failed>>, sup::tell<messages::msg<messages::Finished>>,
    sup::tell<messages::msg<messages::Stopped>>, sup::tell<messages::msg<messages::EndAnswer>>,
    // From diagnosis, when it begins: answered with Sealed if a generation runs.
    sup::tell<messages::msg<messages::SealedRequest>>,
    // From a shell, through its session.
    sup::ask<messages::msg<messages::ScaleRequest>>::yields<messages::msg<messages::ScaleReport>>,
    // From the tree: a generation has ended.
    sup::tell<sup::child_end>,
    // From whatever runs the master.
    sup::tell<messages::msg<messages::Abandon>>>;

/// `on_verdict` is called after the verdict was recorded and sent to the nodes; again if recovery
/// starts anew later.
/// `topology` is asked once it begins, if there is one and a file is to be read. `cluster` hears of
/// nodes that are excluded for their hardware.
handle start(sup::context& ctx, rendezvous_options sizes, recovery_options options,
             const master_addresses& master,
             std::function<void(const recovery_core::verdict&)> on_verdict,
             std::shared_ptr<topology_source> topology, std::shared_ptr<ports::cluster> cluster);

} // namespace troupe::actors::recovery
