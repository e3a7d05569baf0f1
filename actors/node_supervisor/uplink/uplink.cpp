#include "actors/node_supervisor/uplink/uplink.hpp"

#include "actors/node_supervisor/addresses.hpp"
#include "actors/tree_report.hpp"
#include "messages/conversations.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>

namespace troupe::actors::uplink {

struct dial_outcome {
  result<ports::connection_ptr> link;
};
/// `attempt` tells the current link's events from those of a link already given up.
struct received {
  std::uint64_t attempt = 0;
  messages::any_msg message;
};
struct closed {
  std::uint64_t attempt = 0;
  std::string reason;
};
/// To itself: what had been said before the supervisor asked this actor to end has been handled.
struct last_words_said {};

} // namespace troupe::actors::uplink

TROUPE_LOCAL_MESSAGE(troupe::actors::uplink::dial_outcome)
TROUPE_LOCAL_MESSAGE(troupe::actors::uplink::received)
TROUPE_LOCAL_MESSAGE(troupe::actors::uplink::closed)
TROUPE_LOCAL_MESSAGE(troupe::actors::uplink::last_words_said)

namespace troupe::actors::uplink {

namespace {

struct state {
  sup::context ctx;
  uplink_core core;
  identity who;
  messages::author author;
  ports::endpoint master;
  std::shared_ptr<ports::transport> transport;
  std::shared_ptr<ports::keeping> keeping;
  /// The last that this node was told: a replicator that crashed may have missed it.
  std::optional<messages::msg<messages::RankOwners>> owners;
  /// Whose neighbours are asked if the master is missed; and what they have been told.
  std::optional<messages::msg<messages::Prepare>> prepared;
  std::optional<messages::MasterReach::Reach> told_reach;
  node_addresses node;
  ports::connection_ptr link;
  /// The supervisor wants this actor to end; it does once the link has.
  bool leaving = false;
  std::uint64_t attempt = 0;
  sup::alarm alarm;
};

using private_handle =
    sup::widened<handle, dial_outcome, received, closed, last_words_said, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void perform(self_ptr self, const uplink_core::effects& effects);

/// The agent's state for the next hello. If the agent is just being restarted, the next attempt
/// asks again.
void ask_state(self_ptr self) {
  const auto question = self->state->author.write<messages::StateRequest>({}, [](auto) {});
  sup::request(
      self, self->state->node.agent, limits::request_within, question,
      [self](const messages::msg<messages::NodeState>& s) {
        perform(self, self->state->core.state_known(sup::now(self), s));
      },
      [self](const error& e) {
        perform(self, self->state->core.state_unknown(sup::now(self), e.what));
      });
}

void answer_tree(self_ptr self, const messages::msg<messages::TreeRequest>& request) {
  const auto question = request.envelope();
  sup::request(
      self, self->state->node.root, limits::request_within, sup::dump{},
      [self, question](const sup::node_report& r) {
        auto& state = *self->state;
        const auto answer = state.author.answer<messages::TreeReport>(
            question, [&](auto b) { write_tree(r, b.initRoots(1)[0]); });
        if (state.link)
          (void)state.link->send(answer.any());
      },
      [](const error&) { /* the asking side has its own deadline */ });
}

void tell_owners(self_ptr self, const messages::msg<messages::RankOwners>& m) {
  self->state->owners = m;
  sup::send(self, self->state->node.replicator, m);
}

/// The master's directives, to the roles they are for.
void deliver(self_ptr self, const messages::any_msg& said) {
  using namespace messages;
  auto& s = *self->state;
  const auto to_agent = [self, &s](const auto& m) { sup::send(self, s.node.agent, m); };
  const auto to_persister = [self, &s](const auto& m) { sup::send(self, s.node.persister, m); };
  const auto to_watchdog = [self, &s](const auto& m) { sup::send(self, s.node.hang_watchdog, m); };
  const auto to_prober = [self, &s](const auto& m) { sup::send(self, s.node.network_prober, m); };
  route(said, directives{},
        receivers{[&](const auto& m) { to_agent(m); },
                  [&](const msg<Prepare>& m) {
                    s.prepared = m;
                    to_agent(m);
                  },
                  [&](const msg<RankOwners>& m) { tell_owners(self, m); },
                  [&](const msg<CommitStep>& m) { to_persister(m); },
                  [&](const msg<StepFinalized>& m) { to_persister(m); },
                  [&](const msg<ProgressWanted>& m) { to_watchdog(m); },
                  [&](const msg<StacksWanted>& m) {
                    sup::send(self, s.node.worker_channel, m);
                    to_watchdog(m);
                  },
                  [&](const msg<Diagnosed>& m) { to_watchdog(m); },
                  [&](const msg<Cleared>& m) { to_watchdog(m); },
                  [&](const msg<NodeProbeWanted>& m) { to_prober(m); },
                  [&](const msg<GroupProbeWanted>& m) { to_prober(m); },
                  [self](const msg<TreeRequest>& m) { answer_tree(self, m); }});
}

struct performer {
  self_ptr self;

  void operator()(const uplink_core::ask_state&) const { ask_state(self); }
  void operator()(const uplink_core::dial& e) const {
    self->state->transport->dial(self->state->master, e.hello,
                                 [me = private_handle{self}](result<ports::connection_ptr> link) {
                                   sup::post(me, dial_outcome{std::move(link)});
                                 });
  }
  void operator()(const uplink_core::close_link& e) const {
    if (self->state->link)
      self->state->link->close(e.reason);
    self->state->link.reset();
    ++self->state->attempt;
  }
  void operator()(const uplink_core::say& e) const {
    if (self->state->link)
      (void)self->state->link->send(e.message);
  }
  void operator()(const uplink_core::deliver& e) const { deliver(self, e.message); }
  void operator()(const uplink_core::linked&) const {
    const auto linked = messages::local<messages::MasterLinked>(self->state->ctx.path());
    sup::send(self, self->state->node.persister, linked);
    sup::send(self, self->state->node.hang_watchdog, linked);
  }
  void operator()(const uplink_core::start_over& e) const {
    sup::send(self, self->state->node.agent, e.message);
  }
  void operator()(const uplink_core::give_up& e) const {
    sup::send(self, self->state->node.agent,
              messages::local<messages::Abandon>(self->state->ctx.path(),
                                                 [&e](auto b) { b.setReason(e.reason); }));
  }
  void operator()(const uplink_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

/// As whom the next uplink goes on, in this supervisor or its successor.
void remember(state& s) {
  const known_as now{s.core.which(), s.core.follows(), s.core.dispensable()};
  if (*s.who == now)
    return;
  *s.who = now;
  s.keeping->keep(identity_slot, kept(s.author, now));
}

void tell_neighbours(self_ptr self) {
  using namespace messages;
  auto& s = *self->state;
  const auto reach = s.core.reach();
  if (std::exchange(s.told_reach, reach) == reach)
    return;
  sup::send(self, s.node.neighbours, s.author.write<MasterReach>({}, [&](auto b) {
    b.setReach(reach);
    b.setOutage(s.core.outage());
    b.setFollows(s.core.follows().value);
    if (s.prepared)
      b.setNeighbours(s.prepared->read()->getSeat().getNeighbours());
  }));
}

void perform(self_ptr self, const uplink_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  remember(*self->state);
  tell_neighbours(self);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
  if (self->state->leaving && !self->state->link)
    sup::stop(self);
}

void leave(self_ptr self) {
  auto& s = *self->state;
  s.leaving = true;
  if (s.link)
    s.link->close("the node supervisor ends");
  else
    sup::stop(self);
}

void take_link(self_ptr self, const dial_outcome& d) {
  auto& s = *self->state;
  if (s.leaving)
    return;
  if (!d.link)
    return perform(self, s.core.dialled(sup::now(self), d.link.error()));
  s.link = *d.link;
  const auto attempt = ++s.attempt;
  perform(self, s.core.dialled(sup::now(self), std::nullopt));
  if (!s.link)
    return;
  const private_handle me{self};
  s.link->open({
      [me, attempt](messages::any_msg m) {
        sup::post(me, received{attempt, std::move(m)});
      },
      [me, attempt](ports::link_ending how) {
        sup::post(me, closed{attempt, std::move(how.reason)});
      },
  });
}

void link_closed(self_ptr self, const closed& c) {
  if (c.attempt != self->state->attempt)
    return;
  self->state->link.reset();
  perform(self, self->state->core.closed(sup::now(self), c.reason));
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, uplink_options options,
                                     std::uint64_t seed, identity who, ports::endpoint master,
                                     std::shared_ptr<ports::transport> transport,
                                     std::shared_ptr<ports::keeping> keeping, node_addresses node) {
  // The wish to end overtakes what is in the mailbox; a Goodbye in there must still go out.
  sup::harden(self, ctx, [self](const sup::stop_order&) {
    sup::later(self, duration::zero(), last_words_said{});
  });
  self->state.emplace(
      state{ctx,
            uplink_core(std::move(options), messages::author(ctx.path(), who->follows),
                        random_source(seed + ctx.incarnation()), who->which, sup::now(self),
                        who->dispensable),
            who,
            messages::author(ctx.path()),
            std::move(master),
            std::move(transport),
            std::move(keeping),
            std::nullopt,
            std::nullopt,
            std::nullopt,
            std::move(node),
            {},
            false,
            0,
            {}});
  perform(self, self->state->core.tick(sup::now(self)));
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::any_msg& report) { perform(self, self->state->core.report(report)); },
      [self](const messages::msg<messages::StateRenewed>&) {
        perform(self, self->state->core.renew(sup::now(self)));
      },
      [self](const messages::msg<messages::OwnersRequest>&)
          -> sup::answer<messages::msg<messages::RankOwners>> {
        if (!self->state->owners)
          return sup::fail(errc::unavailable, "the master has not told yet which ranks are where");
        return *self->state->owners;
      },
      [self](const messages::msg<messages::ReachRequest>&) {
        self->state->told_reach.reset();
        tell_neighbours(self);
      },
      [self](const messages::msg<messages::NeighboursSaid>& m) {
        perform(self, self->state->core.neighbours_said(sup::now(self), m));
      },
      [self](const dial_outcome& d) { take_link(self, d); },
      [self](const received& r) {
        if (r.attempt != self->state->attempt)
          return;
        auto link = self->state->link;
        perform(self, self->state->core.received(sup::now(self), r.message));
        if (link)
          link->taken();
      },
      [self](const closed& c) { link_closed(self, c); },
      [self](last_words_said) { leave(self); },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, uplink_options options, std::uint64_t seed, identity who,
             ports::endpoint master, const std::shared_ptr<ports::transport>& transport,
             const std::shared_ptr<ports::keeping>& keeping, const node_addresses& node) {
  return ctx.spawn<handle>(behave, ctx, std::move(options), seed, std::move(who), std::move(master),
                           transport, keeping, node);
}

} // namespace troupe::actors::uplink
