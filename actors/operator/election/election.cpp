#include "actors/operator/election/election.hpp"

#include "actors/operator/addresses.hpp"
#include "kube/lease_core.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>

namespace troupe::actors::election {

struct answered {
  std::uint64_t number = 0;
  kube::api_answer answer;
};

} // namespace troupe::actors::election

TROUPE_LOCAL_MESSAGE(troupe::actors::election::answered)

namespace troupe::actors::election {

namespace {

using kube::lease_core;

struct state {
  sup::context ctx;
  lease_core core;
  operator_world world;
  operator_addresses at;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, answered, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void tell_informer(self_ptr self) {
  sup::send(self, self->state->at.informer,
            messages::local<messages::Leading>(self->state->ctx.path(), [](auto) {}));
}

struct performer {
  self_ptr self;

  void operator()(const lease_core::call& e) const {
    self->state->world.api->call(
        e.what, [me = private_handle{self}, number = e.number](const kube::api_answer& a) {
          sup::post(me, answered{number, a});
        });
  }
  void operator()(const lease_core::leads&) const {
    sup::tell_log(self->state->ctx, log::level::notice, "leads",
                  "this operator holds the lease and acts from now on", {});
    tell_informer(self);
  }
  void operator()(const lease_core::leads_no_more&) const { self->state->world.on_over(); }
  void operator()(const lease_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const lease_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, lease_core::options o,
                                     operator_world world, operator_addresses at) {
  sup::harden(self, ctx);
  self->state.emplace(state{ctx, lease_core(std::move(o)), std::move(world), std::move(at), {}});
  perform(self, self->state->core.tick(sup::now(self), self->state->world.utc()));
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::LeadAsked>&) {
        if (self->state->core.is_leader())
          tell_informer(self);
      },
      [self](const answered& m) {
        perform(self, self->state->core.answered(sup::now(self), self->state->world.utc(), m.number,
                                                 m.answer));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self), self->state->world.utc()));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const operator_options& o, const operator_world& world,
             const operator_addresses& at) {
  return ctx.spawn<handle>(
      behave, ctx, lease_core::options{o.lease_name_space, o.lease, o.self, o.seed}, world, at);
}

} // namespace troupe::actors::election
