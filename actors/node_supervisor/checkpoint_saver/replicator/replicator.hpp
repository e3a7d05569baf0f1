#pragma once

#include "actors/node_supervisor/checkpoint_saver/replicator/replicator_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// Has this node's snapshots held at other nodes, and the node's host compare what others give here
/// with the ranks that they run: see replicator_core.hpp. State: comes back from the host, which
/// tells a new replicator of all requests that are not finalized, and goes on with what it was
/// asked for before; and from the uplink, which knows the last RankOwners.
namespace troupe::actors::replicator {

using handle = sup::protocol<
    // From the master, through the uplink.
    sup::tell<messages::msg<messages::RankOwners>>>;

handle start(sup::context& ctx, node_name node, const std::shared_ptr<ckpt::replication_host>& host,
             const node_addresses& at);

} // namespace troupe::actors::replicator
