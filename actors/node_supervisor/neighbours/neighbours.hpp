#pragma once

#include "actors/node_supervisor/neighbours/neighbours_core.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>
#include <memory>

/// Other nodes' word on whether the master is there: see neighbours_core.hpp. State: none; a new
/// one asks the uplink how the master is reached.
namespace troupe::actors::neighbours {

using handle = sup::protocol<
    // From the uplink.
    sup::tell<messages::msg<messages::MasterReach>>>;

/// From the actor's thread, to the uplink.
struct uplink_of_node {
  std::function<void(const messages::msg<messages::ReachRequest>&)> ask;
  std::function<void(const messages::msg<messages::NeighboursSaid>&)> tell;
};

/// `lease`: of links to the master.
handle start(sup::context& ctx, duration lease, const std::shared_ptr<ports::bulk_links>& bulk,
             uplink_of_node uplink);

} // namespace troupe::actors::neighbours
