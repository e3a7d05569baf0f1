#include "actors/topology.hpp"

#include "runtime/sup/shell.hpp"

namespace troupe::actors {

using sup::budget;
using sup::restart;
using sup::stop_within;

namespace {

/// A handful of crashes a minute is bad luck; more is a bug that restarting does not cure.
constexpr budget patience{5, 60s};

} // namespace

sup::tree master_tree(const master_world& world, const master_options& options,
                      const master_addresses& places, const master_events& events) {
  auto at = places;
  at.commands_as = world.journal->opened_as();
  auto membership = options.membership;
  membership.has_predecessor = world.journal->taken_up();
  // A restarted gateway must listen where the nodes already look for it, also if the port was
  // picked for it.
  const auto listens_at = std::make_shared<ports::endpoint>(options.gateway.listen_on);
  const auto remember_port = [listens_at,
                              tell = events.on_listening](const ports::endpoint& where) {
    listens_at->port = where.port;
    tell(where);
  };

  // Each child relies on those above it: no decision is announced that the journal does not have,
  // the planner counts on membership's order of events, a generation on its planner, and a session
  // on all of them. So a crash takes along everything below it. Nodes do not notice: a shutdown by
  // supervision is no order to stop training.
  return sup::rest_for_one(
             "master", patience,
             {
                 sup::worker("journal", restart::permanent, stop_within{5s}, at.journal,
                             [o = options.journal, store = world.journal](sup::context& ctx) {
                               return journal::start(ctx, o, store);
                             }),
                 sup::worker(
                     "membership", restart::permanent, stop_within{1s}, at.membership,
                     [o = membership, at,
                      tell = membership::listeners{events.on_everyone_left, events.on_job_options}](
                         sup::context& ctx) { return membership::start(ctx, o, at, tell); }),
                 // Before the sessions, since new links are what brings its state back.
                 sup::worker("catalog", restart::permanent, stop_within{1s}, at.catalog,
                             [at](sup::context& ctx) { return catalog::start(ctx, at); }),
                 sup::worker("recovery", restart::permanent, stop_within{1s}, at.recovery,
                             [o = options, at, tell = events.on_verdict, topology = world.topology,
                              cluster = world.cluster](sup::context& ctx) {
                               return recovery::start(ctx, o.rendezvous, o.recovery, at, tell,
                                                      topology, cluster);
                             }),
                 // children: generation/rendezvous
                 // children: generation/member
                 // One at a time, temporary: which one follows is the planner's decision. A
                 // failed one counts against its node for the life of the job; the planner knows
                 // the number where nodes say it.
                 sup::dynamic(
                     "job",
                     budget{options.recovery.max_restarts.value_or(limits::restarts_max), for_life},
                     at.job,
                     [planner = at.recovery](const sup::child_end& e) { sup::post(planner, e); }),
                 // children: session, one per connected peer, temporary: the peer dials again.
                 sup::dynamic("sessions", patience, at.sessions),
                 sup::worker("gateway", restart::permanent, stop_within{1s}, at.gateway,
                             [o = options.gateway, job = options.membership.job, at, listens_at,
                              remember_port, transport = world.transport](sup::context& ctx) {
                               return gateway::start(
                                   ctx, gateway::options{*listens_at, o.node_trees_max, job},
                                   transport, at, remember_port);
                             }),
                 // Last, so that its crash costs nothing but what it knows.
                 sup::worker("diagnosis", restart::permanent, stop_within{1s}, at.diagnosis,
                             [o = options.diagnosis, at](sup::context& ctx) {
                               return diagnosis::start(ctx, o, at);
                             }),
                 // The planner asks it, and asks again if it falls.
                 sup::worker(
                     "network_check", restart::permanent, stop_within{1s}, at.network_check,
                     [o = options.network_check, at, cluster = world.cluster](sup::context& ctx) {
                       return network_check::start(ctx, o, cluster, at);
                     }),
                 // What it was asked for is silent for network_check when it falls.
                 sup::worker("witness", restart::permanent, stop_within{1s}, at.witness,
                             [o = options.network_check, at, bulk = world.bulk](sup::context& ctx) {
                               return witness::start(ctx, o, bulk, at.network_check);
                             }),
             })
      .at(at.root);
}

sup::tree node_tree(const node_world& world, const node_options& options, const node_addresses& at,
                    const node_events& events) {
  random_source random(options.seed);
  const auto who = std::make_shared<uplink::known_as>();
  who->which = incarnation{random.next()};
  if (const auto kept = world.keeping->kept(uplink::identity_slot))
    *who = uplink::recall(kept);
  else
    world.keeping->keep(uplink::identity_slot,
                        uplink::kept(messages::author("node_supervisor"), *who));
  const auto jitter = random.next();

  // A bug in one child must not stop training, so they fall alone.
  return sup::one_for_one(
             "node_supervisor", patience,
             {
                 // Processes whose agent has crashed belong to no generation that anything could
                 // steer: they end with it, before the next agent begins and is asked what runs
                 // here. With the agent beside worker_group below this node, a new agent would have
                 // to clear what it finds first, and hold back every question meanwhile.
                 sup::rest_for_one(
                     "training", patience,
                     {
                         sup::worker(
                             "agent", restart::permanent, stop_within{1s}, at.agent,
                             [o = options, at,
                              of = agent::world{world.processes, world.stores, world.keeping},
                              tell = events.on_over](sup::context& ctx) {
                               return agent::start(ctx, o.agent, o.program, of, at, tell);
                             }),
                         // children: generation/worker, one generation at most: the next one is
                         // started by the agent when the last one is gone.
                         sup::dynamic("worker_group", patience, at.worker_group,
                                      agent::hears_of_ends(at.agent)),
                     }),
                 // To the disk and to other nodes: what the one does the other never waits for, and
                 // neither knows anything that the other lost. Both find in the snapshots' memory
                 // what is requested of them.
                 sup::one_for_one(
                     "checkpoint_saver", patience,
                     {
                         sup::worker("persister", restart::permanent, stop_within{1s}, at.persister,
                                     [name = options.agent.node, at,
                                      host = world.checkpoints](sup::context& ctx) {
                                       return persister::start(ctx, name, host, at);
                                     }),
                         sup::worker("replicator", restart::permanent, stop_within{1s},
                                     at.replicator,
                                     [name = options.agent.node, at,
                                      host = world.copies](sup::context& ctx) {
                                       return replicator::start(ctx, name, host, at);
                                     }),
                     }),
                 // Processes dial each new one, and say again what it needs to know.
                 sup::worker(
                     "worker_channel", restart::permanent, stop_within{1s}, at.worker_channel,
                     [at, links = world.workers, stacks = world.progress](sup::context& ctx) {
                       return worker_channel::start(ctx, links, stacks, at);
                     }),
                 // It finds in the pages of the processes how far they are.
                 sup::worker("hang_watchdog", restart::permanent, stop_within{1s}, at.hang_watchdog,
                             [name = options.agent.node, policy = options.watch, at,
                              host = world.progress](sup::context& ctx) {
                               return hang_watchdog::start(ctx, name, policy, host, at);
                             }),
                 // What it was asked for is silent for the master when it falls.
                 sup::worker(
                     "network_prober", restart::permanent, stop_within{1s}, at.network_prober,
                     [name = options.agent.node, at, host = world.probes, bulk = world.bulk,
                      master = options.master.host](sup::context& ctx) {
                       const auto report = [uplink = at.uplink](const messages::any_msg& m) {
                         sup::post(uplink, m);
                       };
                       return network_prober::start(ctx, name, host, bulk, {report, master});
                     }),
                 // It asks the uplink, also one that is started again before it.
                 sup::worker(
                     "neighbours", restart::permanent, stop_within{1s}, at.neighbours,
                     [at, lease = options.uplink.lease, bulk = world.bulk](sup::context& ctx) {
                       using namespace messages;
                       return neighbours::start(
                           ctx, lease, bulk,
                           {[uplink = at.uplink](const msg<ReachRequest>& m) {
                              sup::post(uplink, m);
                            },
                            [uplink = at.uplink](const msg<NeighboursSaid>& m) {
                              sup::post(uplink, m);
                            }});
                     }),
                 // Last, since its first hello says what the agent says.
                 sup::worker("uplink", restart::permanent, stop_within{2s}, at.uplink,
                             [o = options, at, jitter, who, transport = world.transport,
                              keeping = world.keeping](sup::context& ctx) {
                               return uplink::start(ctx, o.uplink, jitter, who, o.master, transport,
                                                    keeping, at);
                             }),
             })
      .at(at.root);
}

sup::tree operator_tree(const operator_options& options, const operator_world& world,
                        const operator_addresses& at) {
  // Nothing acts that does not lead, and no job is told anything but by the informer; so a crash
  // takes along everything below it, and all of it is read again from the cluster.
  return sup::rest_for_one(
      "operator", patience,
      {
          sup::worker("election", restart::permanent, stop_within{1s}, at.election,
                      [options, world, at](sup::context& ctx) {
                        return election::start(ctx, options, world, at);
                      }),
          sup::worker("informer", restart::permanent, stop_within{1s}, at.informer,
                      [options, world, at](sup::context& ctx) {
                        return informer::start(ctx, options, world, at);
                      }),
          // children: job, one per ElasticJob
          sup::dynamic("jobs", patience, at.jobs),
      });
}

} // namespace troupe::actors
