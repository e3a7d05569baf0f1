#pragma once

#include "actors/node_supervisor/network_prober/network_prober_core.hpp"
#include "probe/probe_host.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>
#include <memory>
#include <string>

/// Probes this node, and what is between it and others, when the master asks: see
/// network_prober_core.hpp. State: none; what was under way is silent for the master.
///
/// The master's `witness` is one as well.
namespace troupe::actors::network_prober {

using handle = sup::protocol<
    // From the master's network_check, through the uplink.
    sup::tell<messages::msg<messages::NodeProbeWanted>>,
    sup::tell<messages::msg<messages::GroupProbeWanted>>>;

/// The master, as it is found from here.
struct master_place {
  /// Takes what was found, from the actor's thread.
  std::function<void(const messages::any_msg&)> report;
  /// Where it is dialled; a member of a group without an address is there as well.
  std::string host;
};

handle start(sup::context& ctx, const node_name& node,
             const std::shared_ptr<probe::probe_host>& host,
             const std::shared_ptr<ports::bulk_links>& bulk, master_place master);

} // namespace troupe::actors::network_prober
