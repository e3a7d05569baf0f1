#include "actors/master/membership/membership.hpp"

#include "actors/master/addresses.hpp"
#include "messages/conversations.hpp"
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
  listeners tell;
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
  // A proposal waits for the journal, and a loss in that time is announced before the member is
  // there. Without this word it would wait for the node for ever.
  if (const auto lost = a.catch_up ? std::nullopt : s.core.gone_already(a.node, a.which)) {
    sup::send(self, a.where, *lost);
    return;
  }
  s.attending.insert_or_assign(a.node, a.where);
  const auto said = s.said.find(a.node);
  if (a.catch_up && said != s.said.end())
    sup::send(self, a.where, said->second);
  introduce(self, a.node);
}

messages::msg<messages::NodeReplaced> replaced(const std::string& sender,
                                               const messages::msg<messages::NodeLost>& m) {
  auto lost = m.read();
  return messages::local<messages::NodeReplaced>(sender, [&lost](auto b) {
    b.setNode(lost->getNode());
    b.setReason(lost->getReason());
  });
}

void announce(self_ptr self, const membership_core::announce& e) {
  using namespace messages;
  auto& s = *self->state;
  // The planner first: a member's end must not be judged before its cause is known.
  const auto tell_planner = [self, &s](const auto& m) {
    sup::send(self, s.master.recovery, m);
    return node_name(m.read()->getNode().cStr());
  };
  route(e.message, membership_news{},
        receivers{[&](const msg<NodePresent>& m) {
                    const auto node = tell_planner(m);
                    s.said.insert_or_assign(node, m);
                    sup::send(self, s.attending[node], m);
                    introduce(self, node);
                  },
                  [&](const msg<NodeAway>& m) { s.said.erase(tell_planner(m)); },
                  [&](const msg<NodeLost>& m) {
                    const auto node = tell_planner(m);
                    s.said.erase(node);
                    sup::send(self, s.master.catalog, m);
                    sup::send(self, s.master.diagnosis, m);
                    sup::send(self, s.master.network_check, m);
                    if (e.may_run) {
                      sup::send(self, s.attending[node], replaced(s.ctx.path(), m));
                      s.held.insert_or_assign(node, s.attending[node]);
                    } else {
                      sup::send(self, s.attending[node], m);
                    }
                    s.attending.erase(node);
                  }});
}

struct performer {
  self_ptr self;

  template<class Msg>
  void to_session(session_id id, Msg m) const {
    const auto found = self->state->sessions.find(id);
    if (found != self->state->sessions.end())
      sup::send(self, found->second, std::move(m));
  }

  void end_link(session_id id, const std::string& reason) const {
    to_session(id, messages::local<messages::EndLink>(self->state->ctx.path(),
                                                      [&reason](auto b) { b.setReason(reason); }));
  }

  void operator()(const membership_core::welcome& e) const {
    to_session(e.session, e.message.any());
  }
  void operator()(const membership_core::refuse& e) const {
    to_session(e.session, e.message.any());
    end_link(e.session, "the node was refused");
  }
  void operator()(const membership_core::fence& e) const { end_link(e.session, e.reason); }
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
  void operator()(const membership_core::take_options& e) const {
    sup::request(
        self, self->state->master.journal, limits::journal_patience, e.record.any(),
        [self = self, words = e.words](const messages::msg<messages::Recorded>&) {
          self->state->tell.on_job_options(words);
        },
        [self = self](const error& why) {
          sup::stop(self,
                    error{why.code, "the journal did not take the job's options: " + why.what});
        });
  }
  void operator()(const membership_core::everyone_left&) const {
    self->state->tell.on_everyone_left();
  }
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
                                     master_addresses master, listeners tell) {
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
            std::move(tell),
            {}});
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const arrival& a) {
        self->state->sessions[a.id] = a.where;
        perform(self, self->state->core.hello(sup::now(self), a.id, a.hello));
      },
      [self](const messages::msg<messages::LinkLost>& m) {
        auto lost = m.read();
        const session_id id{lost->getSession()};
        self->state->sessions.erase(id);
        perform(self, self->state->core.closed(sup::now(self), id,
                                               {static_cast<ports::link_end>(lost->getHow()),
                                                lost->getReason().cStr()}));
      },
      [self](const messages::msg<messages::NodeDeparted>& m) {
        auto departed = m.read();
        perform(self, self->state->core.departed(sup::now(self), session_id{departed->getSession()},
                                                 departed->getReason().cStr()));
      },
      [self](const dispatch& d) { hand_out(self, d); },
      [self](const attend& a) { take_attendant(self, a); },
      [self](const messages::msg<messages::Evict>& m) {
        auto e = m.read();
        perform(self,
                self->state->core.evict(sup::now(self), e->getNode().cStr(), e->getReason().cStr(),
                                        e->getMayRejoin(), e->getInShort().cStr()));
      },
      [self](const messages::msg<messages::JobOver>&) {
        perform(self, self->state->core.job_over(sup::now(self)));
      },
      [self](const messages::msg<messages::ListNodes>&) { return list(self); },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

/// The schema's words for it are the port's, in the same order.
using ports::link_end;
using How = messages::LinkLost::How;
static_assert(static_cast<int>(How::CLOSED) == static_cast<int>(link_end::closed) &&
              static_cast<int>(How::SILENT) == static_cast<int>(link_end::silent) &&
              static_cast<int>(How::ISOLATED) == static_cast<int>(link_end::isolated) &&
              static_cast<int>(How::PAUSED_HERE) == static_cast<int>(link_end::paused_here));

} // namespace

messages::msg<messages::Evict> evict(const std::string& sender, const node_name& node,
                                     const std::string& reason, bool may_rejoin,
                                     const std::string& in_short) {
  return messages::local<messages::Evict>(sender, [&](auto b) {
    b.setNode(node);
    b.setReason(reason);
    b.setMayRejoin(may_rejoin);
    b.setInShort(in_short);
  });
}

messages::msg<messages::LinkLost> link_lost(const std::string& sender, session_id session,
                                            const ports::link_ending& how) {
  return messages::local<messages::LinkLost>(sender, [&](auto b) {
    b.setSession(session.value);
    b.setHow(static_cast<How>(how.how));
    b.setReason(how.reason);
  });
}

handle start(sup::context& ctx, membership_options options, const master_addresses& master,
             listeners tell) {
  return ctx.spawn<handle>(behave, ctx, std::move(options), master, std::move(tell));
}

} // namespace troupe::actors::membership
