#pragma once

#include "actors/node_supervisor/checkpoint_saver/checkpoint_saver_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// Gets images of this node's training processes to where they are wanted: see
/// checkpoint_saver_core.hpp. State: comes back from the host, which tells a new saver of all
/// images that are not settled; what was written is written again.
namespace troupe::actors::checkpoint_saver {

/// The node has a new link to a master.
struct linked {};
/// The newest image of every training process here is wanted too.
struct save_newest {};
struct drain {};
struct drained {};

using handle = sup::protocol<
    // From the master's catalog, through the uplink.
    sup::tell<messages::msg<messages::CommitStep>>, sup::tell<messages::msg<messages::StepSettled>>,
    // From this node.
    sup::tell<linked>, sup::tell<save_newest>,
    // Answered when every image that is wanted by now has been settled or given up, which takes no
    // longer than limits::drain_within.
    sup::ask<drain>::yields<drained>>;

handle start(sup::context& ctx, node_name node, const std::shared_ptr<ckpt::checkpoint_host>& host,
             const node_addresses& at);

} // namespace troupe::actors::checkpoint_saver

TROUPE_LOCAL_MESSAGE(troupe::actors::checkpoint_saver::linked)
TROUPE_LOCAL_MESSAGE(troupe::actors::checkpoint_saver::save_newest)
TROUPE_LOCAL_MESSAGE(troupe::actors::checkpoint_saver::drain)
TROUPE_LOCAL_MESSAGE(troupe::actors::checkpoint_saver::drained)
