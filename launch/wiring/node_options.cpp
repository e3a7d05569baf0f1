#include "launch/wiring/node_options.hpp"

#include "launch/wiring/command_digest.hpp"
#include "launch/wiring/hang_findings.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/master_wiring.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/net/addresses.hpp"

#include <utility>

namespace troupe::launch {

namespace {

/// What this node tells others without having dialled. Of a static job on one node no master is
/// dialled at the host that was said.
std::string own_address_told(const launcher_options& o) {
  const auto said = own_address_said(o);
  const auto& r = o.rendezvous;
  const bool alone = r.at_first_node && o.nodes_max == 1;
  return said.empty() && alone && os::is_loopback(r.endpoint.host) ? r.endpoint.host : said;
}

/// As for torchrun: then rank 0's worker hosts the store.
bool leaves_store_to_worker(const machine_facts& machine) {
  const auto found = machine.environment.find("TORCH_DISABLE_SHARE_RDZV_TCP_STORE");
  return found != machine.environment.end() && found->second == "1";
}

} // namespace

actors::node_options node_options_of(const launcher_options& o, const machine_facts& machine,
                                     const placement& where, const node_name& name,
                                     std::uint64_t seed, actors::training_program p) {
  const auto& master = where.master;
  actors::node_options n;
  n.uplink.job = o.rdzv_id;
  n.uplink.node = name;
  n.uplink.address = own_address_told(o);
  n.uplink.slots = o.processes_per_node;
  n.uplink.role = o.role;
  n.uplink.wanted_rank = o.rendezvous.node_rank;
  n.uplink.rank_is_found = o.rendezvous.node_rank_is_found;
  n.uplink.switches = o.switches;
  n.uplink.machine = o.machine;
  if (o.nodes_said) {
    n.uplink.nodes_min = o.nodes_min;
    n.uplink.nodes_max = o.nodes_max;
  }
  n.uplink.max_restarts = o.max_restarts;
  n.uplink.stop_within = o.shutdown_timeout;
  n.uplink.command = command_of(o);
  n.uplink.master = ports::to_string(master);
  n.uplink.connect_within = o.rendezvous.settings.read_timeout.value_or(limits::connect_within);
  n.uplink.train_on_within = o.master_away_timeout;
  n.uplink.lease = link_timing_of(o).lease;
  n.agent.node = n.uplink.node;
  n.agent.host = host_name();
  n.agent.slots = o.processes_per_node;
  n.agent.stop_within = o.shutdown_timeout;
  n.agent.hosts_store = !leaves_store_to_worker(machine);
  n.agent.store_port = where.store_port;
  n.agent.save_at_breakpoint = o.policy.save_at_breakpoint;
  n.agent.end_signal = o.policy.planned_end.signal;
  if (o.policy.planned_end.asks)
    n.agent.leave_within = o.policy.planned_end.within;
  n.program = std::move(p);
  n.watch = watch_policy_of(o.hangs);
  n.master = master;
  n.seed = seed;
  return n;
}

} // namespace troupe::launch
