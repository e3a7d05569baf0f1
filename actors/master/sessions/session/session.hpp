#pragma once

#include "actors/master/job/generation/member/member.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/ports/transport.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <string>

namespace troupe::actors {
struct master_addresses;
}

/// The master's end of one link, standing for the peer's roles here: what is sent to it goes out,
/// what comes in goes to the role it is meant for. Ends with the link. State: the link, nothing
/// that would have to survive.
namespace troupe::actors::session {

/// This member stands for the node from now on: what the node says of its part is the member's.
struct attended {
  sup::address<member::handle> where;
};

using handle = sup::protocol<
    // A message for the peer.
    sup::tell<messages::any_msg>, sup::tell<messages::msg<messages::EndLink>>,
    // From membership.
    sup::tell<attended>,
    // A question to the peer. Fails at once when the link ends or limits::open_questions_max are
    // open.
    sup::ask<messages::msg<messages::TreeRequest>>::yields<messages::msg<messages::TreeReport>>>;

/// `job`: what a shell is told.
handle start(sup::context& ctx, session_id id, ports::peer peer, const std::string& job,
             const master_addresses& master);

} // namespace troupe::actors::session

TROUPE_LOCAL_MESSAGE(troupe::actors::session::attended)
