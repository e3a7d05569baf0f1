#include "actors/topology.hpp"

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
  // A restarted gateway must listen where the nodes already look for it, also if the port was
  // picked for it.
  const auto door = std::make_shared<ports::endpoint>(options.gateway.listen_on);
  const auto remember_door = [door, tell = events.on_listening](const ports::endpoint& where) {
    door->port = where.port;
    tell(where);
  };

  // Each child relies on those above it: nobody announces what the journal does not have,
  // rendezvous counts on membership's order of events, recovery on rendezvous's, and a session on
  // all of them. So a crash takes along everything below it.
  return sup::rest_for_one(
             "master", patience,
             {
                 sup::worker("journal", restart::permanent, stop_within{5s}, at.journal,
                             [store = world.journal](sup::context& ctx) {
                               return journal::start(ctx, store);
                             }),
                 sup::worker("membership", restart::permanent, stop_within{1s}, at.membership,
                             [o = options.membership, at,
                              tell = events.on_everyone_left](sup::context& ctx) {
                               return membership::start(ctx, o, at, tell);
                             }),
                 sup::worker("rendezvous", restart::permanent, stop_within{1s}, at.rendezvous,
                             [o = options.rendezvous, at](sup::context& ctx) {
                               return rendezvous::start(ctx, o, at);
                             }),
                 sup::worker("recovery", restart::permanent, stop_within{1s}, at.recovery,
                             [o = options.recovery, at, tell = events.on_verdict](
                                 sup::context& ctx) { return recovery::start(ctx, o, at, tell); }),
                 // Before the sessions, since new links are what brings its state back.
                 sup::worker("catalog", restart::permanent, stop_within{1s}, at.catalog,
                             [at](sup::context& ctx) { return catalog::start(ctx, at); }),
                 // children: session, one per connected peer, temporary: the peer dials again.
                 sup::dynamic("sessions", patience, at.sessions),
                 sup::worker("gateway", restart::permanent, stop_within{1s}, at.gateway,
                             [o = options.gateway, at, door, remember_door,
                              transport = world.transport](sup::context& ctx) {
                               return gateway::start(ctx, gateway::options{*door, o.node_trees_max},
                                                     transport, at, remember_door);
                             }),
             })
      .at(at.root);
}

sup::tree node_tree(const node_world& world, const node_options& options, const node_addresses& at,
                    const node_events& events) {
  random_source random(options.seed);
  const auto who = std::make_shared<uplink::known_as>();
  who->which = incarnation{random.next()};
  if (const auto kept = world.keeping->kept(ports::kept_as::identity);
      kept.is<messages::Identity>())
    *who = uplink::recall(kept.as<messages::Identity>());
  else
    world.keeping->keep(ports::kept_as::identity,
                        uplink::kept(messages::author("node_supervisor"), *who));
  const auto jitter = random.next();

  // A bug in one child must not stop training, so they fall alone.
  return sup::one_for_one(
             "node_supervisor", patience,
             {
                 // Processes whose leader has crashed belong to nobody's generation any more: they
                 // end with it.
                 sup::rest_for_one(
                     "worker_group", patience,
                     {
                         sup::worker(
                             "leader", restart::permanent, stop_within{1s}, at.leader,
                             [o = options, at, processes = world.processes, stores = world.stores,
                              keeping = world.keeping, tell = events.on_over](sup::context& ctx) {
                               return leader::start(ctx, o.leader, o.program, o.uplink.address,
                                                    processes, stores, keeping, at, tell);
                             }),
                         // children: worker_process, one per local rank, temporary: only a new
                         // generation starts another.
                         sup::dynamic("processes", patience, at.processes),
                     }),
                 sup::worker(
                     "checkpoint_saver", restart::permanent, stop_within{1s}, at.checkpoint_saver,
                     [name = options.leader.node, at, host = world.checkpoints](sup::context& ctx) {
                       return checkpoint_saver::start(ctx, name, host, at);
                     }),
                 // Last, since its first hello says what the leader says.
                 sup::worker("uplink", restart::permanent, stop_within{2s}, at.uplink,
                             [o = options, at, jitter, who, transport = world.transport,
                              keeping = world.keeping](sup::context& ctx) {
                               return uplink::start(ctx, o.uplink, jitter, who, o.master, transport,
                                                    keeping, at);
                             }),
             })
      .at(at.root);
}

} // namespace troupe::actors
