#pragma once

#include "actors/node_supervisor/uplink/identity.hpp"
#include "actors/node_supervisor/uplink/uplink_core.hpp"
#include "runtime/ports/keeping.hpp"
#include "runtime/ports/transport.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// The node's end of the link; stands for the master's roles here. State: the agent's, asked anew
/// for every hello.
namespace troupe::actors::uplink {

using handle = sup::protocol<
    // A report for the master; what the next hello will say anyway is dropped.
    sup::tell<messages::any_msg>,
    // From the agent.
    sup::tell<messages::msg<messages::StateRenewed>>,
    // From the neighbours.
    sup::tell<messages::msg<messages::ReachRequest>>,
    sup::tell<messages::msg<messages::NeighboursSaid>>,
    // From the replicator; fails if this node has not been told yet.
    sup::ask<messages::msg<messages::OwnersRequest>>::yields<messages::msg<messages::RankOwners>>>;

handle start(sup::context& ctx, uplink_options options, std::uint64_t seed, identity who,
             ports::endpoint master, const std::shared_ptr<ports::transport>& transport,
             const std::shared_ptr<ports::keeping>& keeping, const node_addresses& node);

} // namespace troupe::actors::uplink
