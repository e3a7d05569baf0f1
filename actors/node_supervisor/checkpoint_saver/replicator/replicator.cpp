#include "actors/node_supervisor/checkpoint_saver/replicator/replicator.hpp"

#include "actors/limits.hpp"
#include "actors/node_supervisor/addresses.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>
#include <utility>

namespace troupe::actors::replicator {

struct copies_requested {
  ckpt::snapshot_to_copy snapshot;
};
struct copied {
  ckpt::snapshot_to_copy snapshot;
  result<void> how;
};

} // namespace troupe::actors::replicator

TROUPE_LOCAL_MESSAGE(troupe::actors::replicator::copies_requested)
TROUPE_LOCAL_MESSAGE(troupe::actors::replicator::copied)

namespace troupe::actors::replicator {

namespace {

using owners = messages::msg<messages::RankOwners>;

struct state {
  sup::context ctx;
  replicator_core core;
  std::shared_ptr<ckpt::replication_host> host;
};

using private_handle = sup::widened<handle, copies_requested, copied>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const replicator_core::copy& e) const {
    self->state->host->copy(e.snapshot,
                            [me = private_handle{self}, snapshot = e.snapshot](result<void> how) {
                              sup::post(me, copied{snapshot, std::move(how)});
                            });
  }
  void operator()(const replicator_core::finalize& e) const {
    self->state->host->finalize(e.snapshot, e.how);
  }
  void operator()(const replicator_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const replicator_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
}

/// What came while no replicator was there is lost, and the master says it once on each link. At
/// the node's start the uplink is not there yet, and nothing is lost either.
void ask_owners(self_ptr self, const node_addresses& at) {
  sup::request(
      self, at.uplink, limits::request_within,
      messages::local<messages::OwnersRequest>(self->state->ctx.path()),
      [self](const owners& known) { self->state->host->learn_owners(known); },
      [](const error&) { /* none are known yet */ });
}

private_handle::behavior_type behave(self_ptr self, const sup::context& ctx, node_name node,
                                     std::shared_ptr<ckpt::replication_host> host,
                                     const node_addresses& at) {
  sup::harden(self, ctx);
  self->state.emplace(state{ctx, replicator_core(std::move(node)), std::move(host)});
  self->state->host->watch([me = private_handle{self}](const ckpt::snapshot_to_copy& snapshot) {
    sup::post(me, copies_requested{snapshot});
  });
  ask_owners(self, at);
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const owners& m) { self->state->host->learn_owners(m); },
      [self](const copies_requested& r) {
        perform(self, self->state->core.copies_requested(sup::now(self), r.snapshot));
      },
      [self](const copied& c) {
        perform(self, self->state->core.copied(sup::now(self), c.snapshot, c.how));
      },
  };
}

} // namespace

handle start(sup::context& ctx, node_name node, const std::shared_ptr<ckpt::replication_host>& host,
             const node_addresses& at) {
  return ctx.spawn<handle>(behave, ctx, std::move(node), host, at);
}

} // namespace troupe::actors::replicator
