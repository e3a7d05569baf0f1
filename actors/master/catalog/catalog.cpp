#include "actors/master/catalog/catalog.hpp"

#include "actors/master/addresses.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>

namespace troupe::actors::catalog {

namespace {

struct state {
  sup::context ctx;
  catalog_core core;
  master_addresses master;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const catalog_core::say& e) const {
    sup::send(self, self->state->master.membership, membership::dispatch{e.to, e.message});
  }
  void operator()(const catalog_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const catalog_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, master_addresses master) {
  sup::harden(self, ctx);
  self->state.emplace(state{
      ctx, catalog_core(messages::author(ctx.path(), master.commands_as)), std::move(master), {}});
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::ShardReport>& m) {
        perform(self, self->state->core.shard_reported(sup::now(self), m));
      },
      [self](const messages::msg<messages::StepCommitted>& m) {
        perform(self, self->state->core.step_committed(sup::now(self), m));
      },
      [self](const messages::msg<messages::Sealed>& m) { self->state->core.sealed(m); },
      [self](const messages::msg<messages::NodeLost>& m) {
        perform(self, self->state->core.node_lost(sup::now(self), m));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const master_addresses& master) {
  return ctx.spawn<handle>(behave, ctx, master);
}

} // namespace troupe::actors::catalog
