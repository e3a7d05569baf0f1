#include "actors/operator/jobs/job/job.hpp"

#include "actors/operator/addresses.hpp"
#include "kube/job_core.hpp"
#include "kube/objects.hpp"
#include "runtime/base/fnv1a.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>

namespace troupe::actors::operated_job {

struct answered {
  std::uint64_t number = 0;
  kube::api_answer answer;
};

} // namespace troupe::actors::operated_job

TROUPE_LOCAL_MESSAGE(troupe::actors::operated_job::answered)

namespace troupe::actors::operated_job {

namespace {

struct state {
  sup::context ctx;
  kube::job_core core;
  operator_world world;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, answered, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

kube::job_core::moment moment_of(self_ptr self) {
  return {sup::now(self), self->state->world.utc()};
}

struct performer {
  self_ptr self;

  void operator()(const kube::job_core::call& e) const {
    self->state->world.api->call(
        e.what, [me = private_handle{self}, number = e.number](const kube::api_answer& a) {
          sup::post(me, answered{number, a});
        });
  }
  void operator()(const kube::job_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const kube::job_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, std::string route,
                                     kube::job_core::options o, operator_world world,
                                     operator_addresses at) {
  sup::harden(self, ctx);
  self->state.emplace(state{ctx, kube::job_core(std::move(o)), std::move(world), {}});
  sup::send(self, at.informer,
            messages::local<messages::JobBegins>(ctx.path(), [&](auto b) { b.setRoute(route); }));
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::JobObject>& m) {
        if (const auto object = kube::parsed(m.read()->getJson()))
          perform(self, self->state->core.job_is(moment_of(self), *object));
      },
      [self](const messages::msg<messages::PodObject>& m) {
        if (const auto object = kube::parsed(m.read()->getJson()))
          perform(self, self->state->core.pod_is(moment_of(self), *object));
      },
      [self](const messages::msg<messages::PodGone>& m) {
        perform(self, self->state->core.pod_gone(moment_of(self), m.read()->getUid()));
      },
      [self](const messages::msg<messages::PodsTold>&) {
        perform(self, self->state->core.all_told(moment_of(self)));
      },
      [self](const answered& m) {
        perform(self, self->state->core.answered(moment_of(self), m.number, m.answer));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(moment_of(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const std::string& route, const operator_options& options,
             const operator_world& world, const operator_addresses& at) {
  fnv1a own;
  own.take(route);
  return ctx.spawn<handle>(
      behave, ctx, route,
      kube::job_core::options{options.policy, world.token(), options.seed ^ own.value()}, world,
      at);
}

} // namespace troupe::actors::operated_job
