#pragma once

#include "actors/operator/world.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

namespace troupe::actors {
struct operator_addresses;
}

/// Follows the objects of the API: kube/informer_core.hpp. Starts and ends the jobs' actors.
///
/// State: what it has been told by the API server, which tells it all again.
namespace troupe::actors::informer {

using handle = sup::protocol<
    // This operator acts from now on.
    sup::tell<messages::msg<messages::Leading>>,
    // A job's actor wants to be told all that is its own.
    sup::tell<messages::msg<messages::JobBegins>>>;

handle start(sup::context& ctx, const operator_options& options, const operator_world& world,
             const operator_addresses& at);

} // namespace troupe::actors::informer
