#include "actors/master/job/generation/member/member.hpp"

#include "actors/master/addresses.hpp"
#include "messages/conversations.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <utility>

namespace troupe::actors::member {

namespace {

struct state {
  sup::context ctx;
  member_core core;
  node_name node;
  sup::address<rendezvous::handle> rendezvous;
  master_addresses master;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const member_core::direct& e) const {
    const auto& s = *self->state;
    sup::send(self, s.master.membership, membership::dispatch{{s.node}, e.message});
  }
  void operator()(const member_core::tell_rendezvous& e) const {
    sup::send(self, self->state->rendezvous, e.message);
  }
  void operator()(const member_core::report& e) const {
    messages::route(e.message, messages::judged_reports{},
                    [this](const auto& m) { sup::send(self, self->state->master.recovery, m); });
  }
  void operator()(const member_core::fail_early& e) const { self->state->ctx.fail_early(e.why); }
  void operator()(const member_core::evict& e) const {
    const auto& s = *self->state;
    sup::send(self, s.master.membership, membership::evict(s.ctx.path(), s.node, e.reason, true));
  }
  void operator()(const member_core::end& e) const {
    if (e.why)
      sup::stop(self, error{errc::closed, *e.why});
    else
      sup::stop(self);
  }
};

void perform(self_ptr self, const member_core::effects& effects) {
  self->state->alarm.arm(self, self->state->core.next_wakeup());
  for (const auto& e : effects)
    std::visit(performer{self}, e);
}

template<class T>
auto on(self_ptr self, member_core::effects (member_core::*event)(const messages::msg<T>&)) {
  return [self, event](const messages::msg<T>& m) { perform(self, (self->state->core.*event)(m)); };
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, member_options options,
                                     const member_world& world, const sup::address<handle>& me,
                                     sup::address<rendezvous::handle> rendezvous,
                                     const master_addresses& master) {
  sup::harden(self, ctx, [self](const sup::stop_order& order) {
    perform(self, self->state->core.ordered(sup::now(self), order));
  });
  const auto node = options.node;
  const auto which = options.which;
  self->state.emplace(
      state{ctx,
            member_core(std::move(options), world, messages::author(ctx.path(), master.commands_as),
                        sup::now(self)),
            node,
            std::move(rendezvous),
            master,
            {}});
  sup::send(self, master.membership, membership::attend{node, which, me, world.start.has_value()});
  perform(self, self->state->core.begin());
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::NodePresent>& m) {
        perform(self, self->state->core.present(sup::now(self), m));
      },
      on(self, &member_core::lost),
      [self](const messages::msg<messages::NodeReplaced>& m) {
        perform(self, self->state->core.replaced(m.read()->getReason().cStr()));
      },
      on(self, &member_core::prepared),
      on(self, &member_core::running),
      on(self, &member_core::failed),
      on(self, &member_core::finished),
      on(self, &member_core::stopped),
      on(self, &member_core::end_answer),
      on(self, &member_core::start),
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const member_options& options, const member_world& world,
             const sup::address<handle>& me, const sup::address<rendezvous::handle>& rendezvous,
             const master_addresses& master) {
  return ctx.spawn<handle>(behave, ctx, options, world, me, rendezvous, master);
}

} // namespace troupe::actors::member
