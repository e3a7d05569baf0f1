#pragma once

#include "actors/master/network_check/check_run_core.hpp"
#include "runtime/ports/cluster.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct master_addresses;
}

/// Finds out which nodes may take part in the job: see check_run_core.hpp. State: none; the planner
/// that asked hears that the question has failed, and asks again.
namespace troupe::actors::network_check {

using handle = sup::protocol<
    // From the planner. The newest question counts: an older one fails.
    sup::ask<messages::msg<messages::CheckWanted>>::yields<messages::msg<messages::NodesChecked>>,
    // From a node's network_prober, through its session, and from the witness.
    sup::tell<messages::msg<messages::NodeProbed>>, sup::tell<messages::msg<messages::GroupProbed>>,
    // From membership.
    sup::tell<messages::msg<messages::NodeLost>>>;

handle start(sup::context& ctx, const network_check_options& options,
             const std::shared_ptr<ports::cluster>& cluster, const master_addresses& master);

} // namespace troupe::actors::network_check
