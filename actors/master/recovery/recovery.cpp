#include "actors/master/recovery/recovery.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/journalled.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/gate.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>

namespace troupe::actors::recovery {

namespace {

struct state;
using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct state {
  sup::context ctx;
  recovery_core core;
  master_addresses master;
  std::function<void(const recovery_core::verdict&)> on_verdict;
  journal::journalled<recovery_core, self_ptr> effects;
  /// Closed until the journal has been read back.
  sup::gate recalled;
  sup::alarm alarm;
};

void perform(self_ptr self, const recovery_core::effects& effects) {
  auto& s = *self->state;
  s.alarm.arm(self, s.core.next_wakeup());
  s.effects.run(effects);
}

struct performer {
  self_ptr self;

  void operator()(const recovery_core::record&) const {
    invariant(false, "records go to the journal");
  }
  void operator()(const recovery_core::instruct& e) const {
    const auto& to = self->state->master.rendezvous;
    if (e.message.is<messages::Reform>())
      sup::send(self, to, e.message.as<messages::Reform>());
    else
      sup::send(self, to, e.message.as<messages::Conclude>());
  }
  void operator()(const recovery_core::verdict& e) const { self->state->on_verdict(e); }
  void operator()(const recovery_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

template<class T>
auto on(self_ptr self,
        recovery_core::effects (recovery_core::*event)(instant, const messages::msg<T>&)) {
  return [self, event](const messages::msg<T>& m) {
    self->state->recalled.pass(
        [self, event, m] { perform(self, (self->state->core.*event)(sup::now(self), m)); });
  };
}

void recall(self_ptr self) {
  sup::request(
      self, self->state->master.journal, limits::journal_within, journal::read_back{},
      [self](const journal::history& h) {
        perform(self, self->state->core.recall(sup::now(self), h.records));
        self->state->recalled.open();
      },
      [self](const error& e) {
        sup::stop(self, error{e.code, "the journal could not be read back: " + e.what});
      });
}

private_handle::behavior_type
behave(self_ptr self, sup::context ctx, recovery_options options, master_addresses master,
       std::function<void(const recovery_core::verdict&)> on_verdict) {
  sup::harden(self, ctx);
  self->state.emplace(
      state{ctx,
            recovery_core(options, messages::author(ctx.path(), master.commands_as)),
            master,
            std::move(on_verdict),
            {self, master.journal,
             [self](const recovery_core::effect& e) { std::visit(performer{self}, e); }},
            {},
            {}});
  recall(self);
  return {
      [self](sup::describe) { return self->state->core.in_words(); },
      on(self, &recovery_core::sealed),
      on(self, &recovery_core::unformable),
      on(self, &recovery_core::nodes_waiting),
      on(self, &recovery_core::indispensable),
      on(self, &recovery_core::node_present),
      on(self, &recovery_core::node_away),
      on(self, &recovery_core::node_lost),
      on(self, &recovery_core::running),
      on(self, &recovery_core::failed),
      on(self, &recovery_core::finished),
      [self](const abandon_job& a) {
        self->state->recalled.pass(
            [self, a] { perform(self, self->state->core.abandon(a.reason)); });
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, recovery_options options, const master_addresses& master,
             std::function<void(const recovery_core::verdict&)> on_verdict) {
  return ctx.spawn<handle>(behave, ctx, options, master, std::move(on_verdict));
}

} // namespace troupe::actors::recovery
