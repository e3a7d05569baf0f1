#pragma once

#include "actors/operator/world.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

namespace troupe::actors {
struct operator_addresses;
}

/// Whether this operator leads: kube/lease_core.hpp. One that has led and may no longer has the
/// whole program end, so that nothing of it acts beside the next one.
///
/// State: none but the lease, which is in the cluster.
namespace troupe::actors::election {

using handle = sup::protocol<
    // The informer begins, and waits to be told that this operator leads.
    sup::tell<messages::msg<messages::LeadAsked>>>;

handle start(sup::context& ctx, const operator_options& options, const operator_world& world,
             const operator_addresses& at);

} // namespace troupe::actors::election
