#include "actors/master/membership/membership.hpp"

#include "actors/master/addresses.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <map>
#include <optional>

namespace troupe::actors::membership {

namespace {

struct state {
  sup::context ctx;
  membership_core core;
  master_addresses master;
  /// Sessions that have said hello and not ended.
  std::map<session_id, session::handle> sessions;
  std::function<void()> on_everyone_left;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void announce(self_ptr self, const messages::any_msg& m) {
  const auto& to = self->state->master.rendezvous;
  if (m.is<messages::NodePresent>())
    sup::send(self, to, m.as<messages::NodePresent>());
  else if (m.is<messages::NodeAway>())
    sup::send(self, to, m.as<messages::NodeAway>());
  else
    sup::send(self, to, m.as<messages::NodeLost>());
}

struct performer {
  self_ptr self;

  template<class Msg>
  void to_session(session_id id, Msg m) const {
    const auto found = self->state->sessions.find(id);
    if (found != self->state->sessions.end())
      sup::send(self, found->second, std::move(m));
  }

  void operator()(const membership_core::welcome& e) const {
    to_session(e.session, e.message.any());
  }
  void operator()(const membership_core::refuse& e) const {
    to_session(e.session, e.message.any());
    to_session(e.session, session::end_link{"the node was refused"});
  }
  void operator()(const membership_core::fence& e) const {
    to_session(e.session, session::end_link{e.reason});
  }
  void operator()(const membership_core::announce& e) const { announce(self, e.message); }
  void operator()(const membership_core::everyone_left&) const { self->state->on_everyone_left(); }
  void operator()(const membership_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const membership_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

void hand_out(self_ptr self, const dispatch& d) {
  for (const auto& node : d.nodes)
    if (const auto id = self->state->core.session_of(node))
      performer{self}.to_session(*id, d.message);
}

present list(self_ptr self) {
  present all;
  for (const auto& [node, id] : self->state->core.present())
    if (const auto s = self->state->sessions.find(id); s != self->state->sessions.end())
      all.nodes.emplace_back(node, s->second);
  return all;
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, membership_options options,
                                     master_addresses master,
                                     std::function<void()> on_everyone_left) {
  sup::harden(self, ctx);
  self->state.emplace(
      state{ctx,
            membership_core(std::move(options), messages::author(ctx.path(), master.commands_as),
                            sup::now(self)),
            std::move(master),
            {},
            std::move(on_everyone_left),
            {}});
  return {
      [self](sup::describe) { return self->state->core.in_words(); },
      [self](const arrival& a) {
        self->state->sessions[a.id] = a.where;
        perform(self, self->state->core.hello(sup::now(self), a.id, a.hello));
      },
      [self](const link_lost& l) {
        self->state->sessions.erase(l.id);
        perform(self, self->state->core.closed(sup::now(self), l.id, l.how));
      },
      [self](const departure& d) {
        perform(self, self->state->core.departed(sup::now(self), d.id, d.reason));
      },
      [self](const dispatch& d) { hand_out(self, d); },
      [self](const expel& e) {
        perform(self, self->state->core.expel(sup::now(self), e.node, e.reason, e.may_rejoin));
      },
      [self](job_over) { perform(self, self->state->core.job_over(sup::now(self))); },
      [self](list_present) { return list(self); },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, membership_options options, const master_addresses& master,
             std::function<void()> on_everyone_left) {
  return ctx.spawn<handle>(behave, ctx, std::move(options), master, std::move(on_everyone_left));
}

} // namespace troupe::actors::membership
