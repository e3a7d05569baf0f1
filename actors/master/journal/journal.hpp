#pragma once

#include "actors/master/journal/journal_core.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/ports/journal_store.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>
#include <vector>

/// What must survive the master. Every decision is recorded here before it is announced; rendezvous
/// and recovery read it back when they start. State: the store has it; what a full disk has not
/// taken is lost with this actor, as it would be in a power cut.
namespace troupe::actors::journal {

struct history {
  std::vector<messages::any_msg> records; ///< oldest first
};

using handle = sup::protocol<
    // A record of journal.capnp. Answered once it survives this process.
    sup::ask<messages::any_msg>::yields<messages::msg<messages::Recorded>>,
    // Everything recorded so far.
    sup::ask<messages::msg<messages::ReadBack>>::yields<history>>;

handle start(sup::context& ctx, journal_options options,
             std::shared_ptr<ports::journal_store> store);

} // namespace troupe::actors::journal

TROUPE_LOCAL_MESSAGE(troupe::actors::journal::history)
