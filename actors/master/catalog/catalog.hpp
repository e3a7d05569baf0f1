#pragma once

#include "actors/master/catalog/catalog_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

namespace troupe::actors {
struct master_addresses;
}

/// Which steps are complete: see catalog_core.hpp. State: comes back from the savers, who say all
/// that is not settled again on the links that they dial after a crash of this actor or its master.
namespace troupe::actors::catalog {

using handle = sup::protocol<
    // From a node's checkpoint_saver, through its session.
    sup::tell<messages::msg<messages::ShardReport>>,
    sup::tell<messages::msg<messages::StepCommitted>>>;

handle start(sup::context& ctx, const master_addresses& master);

} // namespace troupe::actors::catalog
