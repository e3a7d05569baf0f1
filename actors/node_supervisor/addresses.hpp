#pragma once

#include "actors/node_supervisor/checkpoint_saver/persister/persister.hpp"
#include "actors/node_supervisor/checkpoint_saver/replicator/replicator.hpp"
#include "actors/node_supervisor/hang_watchdog/hang_watchdog.hpp"
#include "actors/node_supervisor/neighbours/neighbours.hpp"
#include "actors/node_supervisor/network_prober/network_prober.hpp"
#include "actors/node_supervisor/training/agent/agent.hpp"
#include "actors/node_supervisor/uplink/uplink.hpp"
#include "actors/node_supervisor/worker_channel/worker_channel.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/report.hpp"

namespace troupe::actors {

/// Where a node supervisor's actors find each other. Copies are the same places.
struct node_addresses {
  sup::address<uplink::handle> uplink;
  sup::address<agent::handle> agent;
  sup::address<sup::dynamic_handle> worker_group;
  sup::address<persister::handle> persister;
  sup::address<replicator::handle> replicator;
  sup::address<worker_channel::handle> worker_channel;
  sup::address<hang_watchdog::handle> hang_watchdog;
  sup::address<network_prober::handle> network_prober;
  sup::address<neighbours::handle> neighbours;
  sup::address<sup::supervisor_handle> root;
};

} // namespace troupe::actors
