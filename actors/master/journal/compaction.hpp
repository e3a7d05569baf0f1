#pragma once

#include "messages/msg.hpp"

#include <vector>

namespace troupe::actors::journal {

/// The records that still say something to a master that starts on them, in their order. What was
/// proposed, sealed or counted is replaced by the next of its kind: of a job of a hundred thousand
/// generations the last world, the newest number and the last counted restart of each node remain.
/// A kind that is not known here stays.
///
/// rendezvous_core and recovery_core recall the same state from `compacted(h)` as from `h`,
/// whatever is appended to both. A counted restart of a journal of version 1 does not say how many
/// there were before and stays.
std::vector<messages::any_msg> compacted(const std::vector<messages::any_msg>& history);

} // namespace troupe::actors::journal
