#pragma once

#include "actors/master/journal/journal_core.hpp"
#include "messages/msg.hpp"
#include "runtime/ports/journal_store.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <cstdint>
#include <memory>
#include <vector>

/// What must survive the master. Every decision is recorded here before it is announced; rendezvous
/// and recovery read it back when they start. State: the store has it; what a full disk has not
/// taken is lost with this actor, as it would be in a power cut.
namespace troupe::actors::journal {

struct recorded {
  std::uint64_t index = 0;
};
struct read_back {};
struct history {
  std::vector<messages::any_msg> records; ///< oldest first
};

using handle = sup::protocol<
    // A record of journal.capnp. Answered once it survives this process; with index 0 if it only
    // survives it once the disk has room again (journal_options::asked_for).
    sup::ask<messages::any_msg>::yields<recorded>,
    // Everything recorded so far.
    sup::ask<read_back>::yields<history>>;

handle start(sup::context& ctx, journal_options options,
             std::shared_ptr<ports::journal_store> store);

} // namespace troupe::actors::journal

TROUPE_LOCAL_MESSAGE(troupe::actors::journal::recorded)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::read_back)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::history)
