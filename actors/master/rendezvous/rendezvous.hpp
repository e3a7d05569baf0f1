#pragma once

#include "actors/master/rendezvous/rendezvous_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

namespace troupe::actors {
struct master_addresses;
}

/// Who takes part: see rendezvous_core.hpp. State: comes back from the journal, then from the nodes
/// as they return.
namespace troupe::actors::rendezvous {

using handle = sup::protocol<
    // From membership.
    sup::tell<messages::msg<messages::NodePresent>>, sup::tell<messages::msg<messages::NodeAway>>,
    sup::tell<messages::msg<messages::NodeLost>>,
    // From a member, through its session.
    sup::tell<messages::msg<messages::Prepared>>,
    // From recovery: form the next generation; or the job is over.
    sup::tell<messages::msg<messages::Reform>>, sup::tell<messages::msg<messages::Conclude>>>;

handle start(sup::context& ctx, rendezvous_options options, const master_addresses& master);

} // namespace troupe::actors::rendezvous
