#pragma once

#include "messages/msg.hpp"
#include "runtime/ports/journal_store.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <cstdint>
#include <memory>
#include <vector>

/// What must survive the master. Every decision is recorded here before it is announced; rendezvous
/// and recovery read it back when they start. State: none of its own, the store has it.
namespace troupe::actors::journal {

struct recorded {
  std::uint64_t index = 0;
};
struct read_back {};
struct history {
  std::vector<messages::any_msg> records; ///< oldest first
};

using handle = sup::protocol<
    // A record of journal.capnp. Answered once it survives this process.
    sup::ask<messages::any_msg>::yields<recorded>,
    // Everything recorded so far.
    sup::ask<read_back>::yields<history>>;

handle start(sup::context& ctx, std::shared_ptr<ports::journal_store> store);

} // namespace troupe::actors::journal

TROUPE_LOCAL_MESSAGE(troupe::actors::journal::recorded)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::read_back)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::history)
