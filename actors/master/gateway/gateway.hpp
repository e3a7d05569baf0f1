#pragma once

#include "actors/limits.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/ports/transport.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>
#include <memory>

namespace troupe::actors {
struct master_addresses;
}

/// The master's listener: has a session started for every proven peer, and answers what shells ask.
/// State: none.
namespace troupe::actors::gateway {

struct options {
  ports::endpoint listen_on;
  std::uint32_t node_trees_max = limits::tree_nodes_asked_max;
  std::string job = {}; ///< for shells, which may not know of which job this is the master
};

using handle = sup::protocol<
    // The job's tree: the master's, each node's below the row of its session.
    sup::ask<messages::msg<messages::TreeRequest>>::yields<messages::msg<messages::TreeReport>>>;

/// `on_listening` hears where, each time the gateway has (re)started. Throws with the transport's
/// reason if it cannot listen.
handle start(sup::context& ctx, options o, const std::shared_ptr<ports::transport>& transport,
             const master_addresses& master,
             const std::function<void(const ports::endpoint&)>& on_listening);

} // namespace troupe::actors::gateway
