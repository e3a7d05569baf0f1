#pragma once

#include "actors/master/network_check/network_check.hpp"
#include "actors/node_supervisor/network_prober/network_prober.hpp"
#include "runtime/sup/address.hpp"

/// The third party of two nodes that fail with each other: neither they nor their link can be
/// blamed by what they say. A master that no node shares its machine with takes part in groups
/// itself, where network_check asks it to: see network_check_core.hpp. It is a node's
/// network_prober that probes no devices, on bulk links of the master's own. A master beside a node
/// has no bulk links, and its witness is never asked.
///
/// State: none; what it was asked for is silent when it falls.
namespace troupe::actors::witness {

using handle = network_prober::handle;

handle start(sup::context& ctx, const network_check_options& options,
             const std::shared_ptr<ports::bulk_links>& bulk,
             const sup::address<network_check::handle>& asks);

} // namespace troupe::actors::witness
