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
  /// The member actor of each node in the generation that is up.
  std::map<node_name, sup::address<member::handle>> attending;
  /// The same of a node that is lost, and may still run workers.
  std::map<node_name, sup::address<member::handle>> held;
  /// The last NodePresent of each node that has a link.
  std::map<node_name, messages::msg<messages::NodePresent>> said;
  std::function<void()> on_everyone_left;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

/// What the node says of its part goes to its member directly.
void introduce(self_ptr self, const node_name& node) {
  auto& s = *self->state;
  const auto id = s.core.session_of(node);
  const auto session = id ? s.sessions.find(*id) : s.sessions.end();
  const auto member = s.attending.find(node);
  if (session != s.sessions.end() && member != s.attending.end())
    sup::send(self, session->second, session::attended{member->second});
}

void take_attendant(self_ptr self, const attend& a) {
  auto& s = *self->state;
  s.attending.insert_or_assign(a.node, a.where);
  const auto said = s.said.find(a.node);
  if (a.catch_up && said != s.said.end())
    sup::send(self, a.where, said->second);
  introduce(self, a.node);
}

void announce(self_ptr self, const membership_core::announce& e) {
  auto& s = *self->state;
  const auto& m = e.message;
  // The planner first: a member's end must not be judged before its cause is known.
  const auto& planner = s.master.recovery;
  if (m.is<messages::NodePresent>()) {
    const auto present = m.as<messages::NodePresent>();
    const node_name node = present.read()->getNode().cStr();
    s.said.insert_or_assign(node, present);
    sup::send(self, planner, present);
    sup::send(self, s.attending[node], present);
    introduce(self, node);
  } else if (m.is<messages::NodeAway>()) {
    const auto away = m.as<messages::NodeAway>();
    s.said.erase(away.read()->getNode().cStr());
    sup::send(self, planner, away);
  } else {
    const auto lost = m.as<messages::NodeLost>();
    const node_name node = lost.read()->getNode().cStr();
    s.said.erase(node);
    sup::send(self, planner, lost);
    sup::send(self, s.master.catalog, lost);
    if (e.may_run) {
      sup::send(self, s.attending[node], member::replaced{lost.read()->getReason().cStr()});
      s.held.insert_or_assign(node, s.attending[node]);
    } else {
      sup::send(self, s.attending[node], lost);
    }
    s.attending.erase(node);
  }
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
  void operator()(const membership_core::send_off& e) const {
    to_session(e.session, e.message.any());
  }
  void operator()(const membership_core::announce& e) const { announce(self, e); }
  void operator()(const membership_core::let_go& e) const {
    auto& held = self->state->held;
    const node_name node = e.message.read()->getNode().cStr();
    sup::send(self, held[node], e.message);
    held.erase(node);
  }
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
      all.nodes.push_back({node, id, s->second});
  all.away = self->state->core.away();
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
            {},
            {},
            {},
            std::move(on_everyone_left),
            {}});
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
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
      [self](const attend& a) { take_attendant(self, a); },
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
