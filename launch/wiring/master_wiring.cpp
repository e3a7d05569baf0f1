#include "launch/wiring/master_wiring.hpp"

#include "launch/wiring/command_digest.hpp"
#include "launch/wiring/job_policy.hpp"
#include "launch/wiring/node_check.hpp"

namespace troupe::launch {

master_settings settings_of(const launcher_options& o, const ports::endpoint& listen) {
  master_settings s;
  s.job = o.rdzv_id;
  s.nodes_min = o.nodes_min;
  s.nodes_max = o.nodes_max;
  s.may_have_others = o.may_have_others();
  s.max_restarts = o.max_restarts;
  s.rendezvous = o.rendezvous.settings;
  s.policy = o.policy;
  s.check = o.check;
  s.listen = listen;
  s.slots = o.processes_per_node;
  s.command = command_of(o);
  return s;
}

/// Of nodes that the program was not told, and no node has said, any is taken: the first one says
/// it.
master_settings settings_of(const master_program_options& o) {
  master_settings s;
  s.job = o.rdzv_id;
  s.nodes_min = o.nodes_min;
  s.nodes_max = o.nodes_max;
  s.may_have_others = o.nodes_max > 1 || !o.cluster.elastic_job.empty();
  s.max_restarts = o.max_restarts;
  s.rendezvous = o.rendezvous;
  s.policy = o.policy;
  s.check = o.check;
  s.listen = o.listen;
  return s;
}

link::options link_timing_of(const launcher_options& o) {
  return link::for_peers(o.nodes_max, o.rendezvous.settings.lease);
}

link::options link_timing_of(const master_program_options& o) {
  return link::for_peers(o.nodes_max, o.rendezvous.lease);
}

result<actors::master_options> master_options_of(const master_settings& s) {
  actors::master_options m;
  m.membership.job = s.job;
  m.membership.nodes_min = s.nodes_min;
  m.membership.nodes_max = s.nodes_max;
  m.membership.command = s.command;
  const auto timing = link::for_peers(s.nodes_max, s.rendezvous.lease);
  m.membership.beat_every = timing.beat_every;
  m.recovery.lease = timing.lease;
  m.rendezvous.nodes_min = s.nodes_min;
  m.rendezvous.nodes_max = s.nodes_max;
  m.rendezvous.may_have_others = s.may_have_others;
  m.rendezvous.join_timeout = s.rendezvous.join_timeout.value_or(limits::join_timeout);
  m.rendezvous.last_call = s.rendezvous.last_call_timeout;
  m.recovery.max_restarts = s.max_restarts;
  m.gateway.listen_on = s.listen;
  apply_node_check(s.check, m);
  if (auto applied = apply_policy(s.policy, s.slots, m); !applied)
    return tl::make_unexpected(applied.error());
  return m;
}

} // namespace troupe::launch
