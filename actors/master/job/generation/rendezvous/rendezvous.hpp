#pragma once

#include "actors/master/job/generation/rendezvous/rendezvous_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>

namespace troupe::actors {
struct master_addresses;
}

/// Forms one generation: see rendezvous_core.hpp. Ends, well, once the world is sealed. State: the
/// world it was given; an unsealed one is lost with it.
namespace troupe::actors::rendezvous {

using handle = sup::protocol<
    // From a member: its node is ready.
    sup::tell<messages::msg<messages::Prepared>>>;

/// `to_members` hands Start to all of them.
handle start(sup::context& ctx, const messages::msg<messages::WorldProposed>& world,
             std::function<void(const messages::msg<messages::Start>&)> to_members,
             const master_addresses& master);

} // namespace troupe::actors::rendezvous
