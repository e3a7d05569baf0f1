#include "actors/master/job/generation/rendezvous/rendezvous.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/journalled.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>
#include <utility>

namespace troupe::actors::rendezvous {

namespace {

struct state;
using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct state {
  sup::context ctx;
  rendezvous_core core;
  std::function<void(const messages::msg<messages::Start>&)> to_members;
  master_addresses master;
  journal::journalled<rendezvous_core, self_ptr> effects;
  sup::alarm alarm;
};

struct performer {
  self_ptr self;

  void operator()(const rendezvous_core::record&) const {
    invariant(false, "records go to the journal");
  }
  void operator()(const rendezvous_core::start& e) const { self->state->to_members(e.message); }
  void operator()(const rendezvous_core::sealed& e) const {
    sup::send(self, self->state->master.recovery, e.message);
    sup::send(self, self->state->master.catalog, e.message);
    sup::send(self, self->state->master.diagnosis, e.message);
  }
  void operator()(const rendezvous_core::evict& e) const {
    sup::send(self, self->state->master.membership,
              membership::evict(self->state->ctx.path(), e.node, e.reason, true));
  }
  void operator()(const rendezvous_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
  void operator()(const rendezvous_core::done&) const { sup::stop(self); }
};

void perform(self_ptr self, rendezvous_core::effects effects) {
  self->state->alarm.arm(self, self->state->core.next_wakeup());
  self->state->effects.run(std::move(effects));
}

private_handle::behavior_type
behave(self_ptr self, sup::context ctx, const messages::msg<messages::WorldProposed>& world,
       std::function<void(const messages::msg<messages::Start>&)> to_members,
       const master_addresses& master) {
  sup::harden(self, ctx);
  self->state.emplace(state{
      ctx,
      rendezvous_core(world, messages::author(ctx.path(), master.commands_as), sup::now(self)),
      std::move(to_members),
      master,
      {self, master.journal,
       [self](const rendezvous_core::effect& e) { std::visit(performer{self}, e); }},
      {}});
  self->state->alarm.arm(self, self->state->core.next_wakeup());
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::Prepared>& m) {
        perform(self, self->state->core.prepared(sup::now(self), m));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const messages::msg<messages::WorldProposed>& world,
             std::function<void(const messages::msg<messages::Start>&)> to_members,
             const master_addresses& master) {
  return ctx.spawn<handle>(behave, ctx, world, std::move(to_members), master);
}

} // namespace troupe::actors::rendezvous
