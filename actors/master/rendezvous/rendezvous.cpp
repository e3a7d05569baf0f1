#include "actors/master/rendezvous/rendezvous.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/journalled.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/gate.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>

namespace troupe::actors::rendezvous {

namespace {

struct state;
using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct state {
  sup::context ctx;
  rendezvous_core core;
  master_addresses master;
  journal::journalled<rendezvous_core, self_ptr> effects;
  sup::alarm alarm;
  /// Closed until the journal has been read back.
  sup::gate recalled;
};

struct performer {
  self_ptr self;

  void operator()(const rendezvous_core::record&) const {
    invariant(false, "records go to the journal");
  }
  void operator()(const rendezvous_core::direct& e) const {
    sup::send(self, self->state->master.membership, membership::dispatch{e.nodes, e.message});
  }
  void operator()(const rendezvous_core::inform_recovery& e) const {
    const auto& to = self->state->master.recovery;
    const auto& m = e.message;
    if (m.is<messages::Sealed>())
      sup::send(self, to, m.as<messages::Sealed>());
    else if (m.is<messages::Unformable>())
      sup::send(self, to, m.as<messages::Unformable>());
    else if (m.is<messages::NodesWaiting>())
      sup::send(self, to, m.as<messages::NodesWaiting>());
    else if (m.is<messages::Indispensable>())
      sup::send(self, to, m.as<messages::Indispensable>());
    else if (m.is<messages::NodePresent>())
      sup::send(self, to, m.as<messages::NodePresent>());
    else if (m.is<messages::NodeAway>())
      sup::send(self, to, m.as<messages::NodeAway>());
    else
      sup::send(self, to, m.as<messages::NodeLost>());
  }
  void operator()(const rendezvous_core::expel& e) const {
    sup::send(self, self->state->master.membership,
              membership::expel{e.node, e.reason, e.may_rejoin});
  }
  void operator()(const rendezvous_core::announce_end&) const {
    sup::send(self, self->state->master.membership, membership::job_over{});
  }
  void operator()(const rendezvous_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, rendezvous_core::effects effects) {
  self->state->effects.run(std::move(effects));
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

/// A handler for one kind of message: the core's answer to it, once the past is known.
template<class T>
auto on(self_ptr self,
        rendezvous_core::effects (rendezvous_core::*event)(instant, const messages::msg<T>&)) {
  return [self, event](const messages::msg<T>& m) {
    self->state->recalled.pass(
        [self, event, m] { perform(self, (self->state->core.*event)(sup::now(self), m)); });
  };
}

void recall(self_ptr self) {
  sup::request(
      self, self->state->master.journal, limits::journal_within, journal::read_back{},
      [self](const journal::history& h) {
        self->state->core.recall(sup::now(self), h.records);
        self->state->recalled.open();
        self->state->alarm.arm(self, self->state->core.next_wakeup());
      },
      [self](const error& e) {
        sup::stop(self, error{e.code, "the journal could not be read back: " + e.what});
      });
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, rendezvous_options options,
                                     master_addresses master) {
  sup::harden(self, ctx);
  self->state.emplace(state{
      ctx,
      rendezvous_core(options, messages::author(ctx.path(), master.commands_as), sup::now(self)),
      master,
      {self, master.journal,
       [self](const rendezvous_core::effect& e) { std::visit(performer{self}, e); }},
      {},
      {}});
  recall(self);
  return {
      [self](sup::describe) { return self->state->core.in_words(); },
      on(self, &rendezvous_core::node_present),
      on(self, &rendezvous_core::node_away),
      on(self, &rendezvous_core::node_lost),
      on(self, &rendezvous_core::prepared),
      on(self, &rendezvous_core::reform),
      on(self, &rendezvous_core::conclude),
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, rendezvous_options options, const master_addresses& master) {
  return ctx.spawn<handle>(behave, ctx, options, master);
}

} // namespace troupe::actors::rendezvous
