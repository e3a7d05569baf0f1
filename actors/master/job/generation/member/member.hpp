#pragma once

#include "actors/master/job/generation/member/member_core.hpp"
#include "actors/master/job/generation/rendezvous/rendezvous.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <optional>
#include <string>

/// One node's part in one generation: see member_core.hpp. Stands between its node's session and
/// the generation. State: the world it was given; where its node stands the node says in its next
/// hello.
namespace troupe::actors::member {

using handle = sup::protocol<
    // From membership: the node has a link (with what the node says of itself), or is lost.
    sup::tell<messages::msg<messages::NodePresent>>, sup::tell<messages::msg<messages::NodeLost>>,
    sup::tell<messages::msg<messages::NodeReplaced>>,
    // From the node, through its session.
    sup::tell<messages::msg<messages::Prepared>>, sup::tell<messages::msg<messages::Running>>,
    sup::tell<messages::msg<messages::Failed>>, sup::tell<messages::msg<messages::Finished>>,
    sup::tell<messages::msg<messages::Stopped>>, sup::tell<messages::msg<messages::EndAnswer>>,
    // From rendezvous, once the world is sealed.
    sup::tell<messages::msg<messages::Start>>>;

/// `me`: where the member is found, by membership and the sessions.
handle start(sup::context& ctx, const member_options& options, const member_world& world,
             const sup::address<handle>& me, const sup::address<rendezvous::handle>& rendezvous,
             const master_addresses& master);

} // namespace troupe::actors::member
