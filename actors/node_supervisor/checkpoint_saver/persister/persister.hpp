#pragma once

#include "actors/node_supervisor/checkpoint_saver/persister/persister_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// Has snapshots of this node's training processes written to their checkpoint directories: see
/// persister_core.hpp. State: comes back from the host, which tells a new saver of all
/// snapshots that are not finalized; what was written is written again.
namespace troupe::actors::persister {

using handle = sup::protocol<
    // From the master's catalog, through the uplink.
    sup::tell<messages::msg<messages::CommitStep>>,
    sup::tell<messages::msg<messages::StepFinalized>>,
    // From this node.
    sup::tell<messages::msg<messages::MasterLinked>>,
    sup::tell<messages::msg<messages::SaveNewest>>,
    sup::ask<messages::msg<messages::Drain>>::yields<messages::msg<messages::Drained>>>;

handle start(sup::context& ctx, node_name node, const std::shared_ptr<ckpt::checkpoint_host>& host,
             const node_addresses& at);

} // namespace troupe::actors::persister
