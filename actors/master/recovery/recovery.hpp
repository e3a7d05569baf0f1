#pragma once

#include "actors/master/recovery/recovery_core.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>

namespace troupe::actors {
struct master_addresses;
}

/// What a failure costs: see recovery_core.hpp. State: comes back from the journal, then from the
/// members as they return.
namespace troupe::actors::recovery {

/// Whoever runs the master wants the job to end.
struct abandon_job {
  std::string reason;
};

using handle = sup::protocol<
    // From rendezvous: what the running generation is, and what happens to its members.
    sup::tell<messages::msg<messages::Sealed>>, sup::tell<messages::msg<messages::Unformable>>,
    sup::tell<messages::msg<messages::NodesWaiting>>,
    sup::tell<messages::msg<messages::Indispensable>>,
    sup::tell<messages::msg<messages::NodePresent>>, sup::tell<messages::msg<messages::NodeAway>>,
    sup::tell<messages::msg<messages::NodeLost>>,
    // From members, through their sessions.
    sup::tell<messages::msg<messages::Running>>, sup::tell<messages::msg<messages::Failed>>,
    sup::tell<messages::msg<messages::Finished>>, sup::tell<abandon_job>>;

/// `on_verdict` is called after the verdict was recorded and handed to rendezvous; again if
/// recovery starts anew later.
handle start(sup::context& ctx, recovery_options options, const master_addresses& master,
             std::function<void(const recovery_core::verdict&)> on_verdict);

} // namespace troupe::actors::recovery

TROUPE_LOCAL_MESSAGE(troupe::actors::recovery::abandon_job)
