#pragma once

#include "actors/node_supervisor/network_prober/network_prober_core.hpp"
#include "probe/probe_host.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

namespace troupe::actors {
struct node_addresses;
}

/// Probes this node, and what is between it and others, when the master asks: see
/// network_prober_core.hpp. State: none; what was under way is silent for the master.
namespace troupe::actors::network_prober {

using handle = sup::protocol<
    // From the master's network_check, through the uplink.
    sup::tell<messages::msg<messages::NodeProbeWanted>>,
    sup::tell<messages::msg<messages::GroupProbeWanted>>>;

handle start(sup::context& ctx, const node_name& node,
             const std::shared_ptr<probe::probe_host>& host,
             const std::shared_ptr<ports::bulk_links>& bulk, const node_addresses& at);

} // namespace troupe::actors::network_prober
