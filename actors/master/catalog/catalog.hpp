#pragma once

#include "actors/master/catalog/catalog_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

namespace troupe::actors {
struct master_addresses;
}

/// Which steps are complete: see catalog_core.hpp. State: comes back from the savers. After a crash
/// of this actor or its master, their nodes dial new links, and on those they say again all that is
/// not finalized.
namespace troupe::actors::catalog {

using handle = sup::protocol<
    // From a node's persister, through its session.
    sup::tell<messages::msg<messages::ShardReport>>,
    sup::tell<messages::msg<messages::StepCommitted>>,
    // From rendezvous: which node has which ranks from now on.
    sup::tell<messages::msg<messages::Sealed>>,
    // From membership.
    sup::tell<messages::msg<messages::NodeLost>>>;

handle start(sup::context& ctx, const master_addresses& master);

} // namespace troupe::actors::catalog
