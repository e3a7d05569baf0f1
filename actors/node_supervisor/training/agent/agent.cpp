#include "actors/node_supervisor/training/agent/agent.hpp"

#include "actors/node_supervisor/addresses.hpp"
#include "actors/node_supervisor/training/worker_group/generation/generation.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/spec.hpp"

#include <csignal>
#include <optional>
#include <utility>

namespace troupe::actors::agent {

struct strays_swept {
  ports::swept what;
};
struct strays_awaited {
  ports::left_behind what;
};
struct drain_due {
  generation which;
  duration within{};
};
struct store_opened {
  generation which;
  std::shared_ptr<ports::open_store> store; ///< null, and why not
  std::string why;
};
struct handler_looked_for {
  generation which;
  local_rank local = 0;
  bool there = false;
};
/// The supervisor of all generations has ended, and they with it.
struct group_gone {};

} // namespace troupe::actors::agent

TROUPE_LOCAL_MESSAGE(troupe::actors::agent::strays_swept)
TROUPE_LOCAL_MESSAGE(troupe::actors::agent::strays_awaited)
TROUPE_LOCAL_MESSAGE(troupe::actors::agent::drain_due)
TROUPE_LOCAL_MESSAGE(troupe::actors::agent::store_opened)
TROUPE_LOCAL_MESSAGE(troupe::actors::agent::handler_looked_for)
TROUPE_LOCAL_MESSAGE(troupe::actors::agent::group_gone)

namespace troupe::actors::agent {

namespace {

using messages::msg;

struct state {
  sup::context ctx;
  agent_core core;
  messages::author author;
  training_program what;
  agent_options options;
  world of;
  /// Until it is looked at.
  msg<messages::Underway> inherited;
  node_addresses node;
  std::function<void(const node_outcome&)> on_over;
  /// The generation that was started last, and its workers' places.
  generation started;
  generation_tree::worker_addresses workers;
  sup::dynamic_handle group; ///< the worker_group whose end would be heard of
  /// Of the generation the core is at; ends with this actor.
  std::shared_ptr<ports::open_store> store;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, strays_swept, strays_awaited, drain_due, store_opened,
                                    handler_looked_for, group_gone, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void perform(self_ptr self, const agent_core::effects& effects);

// ---- generations ----

void generation_ended(self_ptr self, generation which) {
  auto& s = *self->state;
  perform(self, s.core.generation_ended(sup::now(self), which, s.of.processes->unix_time_ms()));
}

/// worker_group tells the end of each generation, but not its own.
void watch_group(self_ptr self) {
  auto& s = *self->state;
  auto group = s.node.worker_group.current();
  if (!group || group == s.group)
    return;
  s.group = group;
  sup::when_ended(group, [me = private_handle{self}] { sup::post(me, group_gone{}); });
}

void stop_generation(self_ptr self, const agent_core::stop_generation& e) {
  const sup::stop_order order{sup::stop_order::cause::asked, e.reason, e.signal, e.within};
  // Its end is heard of as GenerationEnded; refused is what has ended already.
  sup::request(
      self, self->state->node.worker_group, e.within + limits::held_by_kernel_within,
      sup::stop_child{in_full(e.which), order}, [](const sup::done&) {}, [](const error&) {});
}

void start_generation(self_ptr self, const agent_core::start_generation& e) {
  auto& s = *self->state;
  s.started = e.which;
  s.workers.clear();
  for (const auto& slot : e.slots)
    s.workers[slot.place.local] = {};
  watch_group(self);
  const auto child = generation_tree::of(e.which, e.slots, s.workers, {s.options.stop_within},
                                         s.what, s.of.processes, s.node.agent);
  sup::request(
      self, s.node.worker_group, limits::start_within, sup::start_child{child},
      [](const sup::done&) { /* its workers report */ },
      [self, which = e.which](const error& why) {
        // No answer in time is no proof: what comes up after all is stopped.
        stop_generation(self, {which, why.what, SIGKILL, limits::kill_within});
        auto& st = *self->state;
        perform(self, st.core.generation_refused(sup::now(self), which, why.what,
                                                 st.of.processes->unix_time_ms()));
      });
}

// ---- the rest of this node ----

void ask_persister(self_ptr self, generation which, duration within) {
  sup::request(
      self, self->state->node.persister, within,
      messages::local<messages::Drain>(self->state->ctx.path()),
      [self, which](const msg<messages::Drained>&) {
        perform(self, self->state->core.drained(sup::now(self), which, std::nullopt));
      },
      [self, which](const error& e) {
        perform(self, self->state->core.drained(sup::now(self), which, e));
      });
}

void open_store(self_ptr self, const agent_core::open_store& e) {
  auto& s = *self->state;
  s.of.processes->aside([me = private_handle{self}, stores = s.of.stores, which = e.which,
                         options = ports::store_options{e.reach, e.address, s.options.store_port}] {
    auto opened = stores->open(options);
    const auto why = opened ? std::string() : opened.error().what;
    sup::post(me, store_opened{which, opened ? std::move(*opened) : nullptr, why});
  });
}

void take(self_ptr self, const store_opened& o) {
  auto& s = *self->state;
  if (!s.core.awaits_store(o.which))
    return; // dropping it closes it
  if (!o.store)
    sup::tell_log(s.ctx, log::level::error, "no_store", o.why);
  s.store = o.store;
  perform(self, s.core.store_placed(sup::now(self), o.which, s.store ? s.store->port() : 0));
}

void adopt_store(self_ptr self, std::uint16_t port) {
  auto& s = *self->state;
  s.store = s.of.stores->adopt(port);
  if (!s.store)
    sup::tell_log(s.ctx, log::level::warning, "store_lost",
                  "the workers' store has ended; what they look for in it they will not find");
}

void pick_port(self_ptr self, const agent_core::pick_port& e) {
  auto& s = *self->state;
  const auto port = s.options.store_port ? result<std::uint16_t>(s.options.store_port)
                                         : s.of.processes->free_port(e.address);
  if (!port)
    sup::tell_log(s.ctx, log::level::error, "no_free_port", port.error().what);
  perform(self, s.core.store_placed(sup::now(self), e.which, port.value_or(0)));
}

void look_for_handler(self_ptr self, const agent_core::look_for_handler& e) {
  const auto& processes = self->state->of.processes;
  processes->aside([me = private_handle{self}, processes, e] {
    sup::post(me, handler_looked_for{e.which, e.local, processes->takes_signal(e.pid, e.signal)});
  });
}

struct performer {
  self_ptr self;

  void operator()(const agent_core::start_generation& e) const { start_generation(self, e); }
  void operator()(const agent_core::stop_generation& e) const { stop_generation(self, e); }
  void operator()(const agent_core::signal_worker& e) const {
    auto& s = *self->state;
    sup::send(self, s.workers.at(e.local),
              s.author.write<messages::WorkerSignal>(s.started, [&](auto b) {
                b.setNumber(e.signal);
                b.setAlone(e.alone);
              }));
  }
  void operator()(const agent_core::look_for_handler& e) const { look_for_handler(self, e); }
  void operator()(const agent_core::sweep& e) const {
    const private_handle me{self};
    self->state->of.processes->sweep(
        e.order, [me](const auto& left) { sup::post(me, strays_awaited{left}); },
        [me](const auto& what) { sup::post(me, strays_swept{what}); });
  }
  void operator()(const agent_core::open_store& e) const { open_store(self, e); }
  void operator()(const agent_core::adopt_store& e) const { adopt_store(self, e.port); }
  void operator()(const agent_core::close_store&) const { self->state->store.reset(); }
  void operator()(const agent_core::pick_port& e) const { pick_port(self, e); }
  void operator()(const agent_core::drain& e) const {
    if (e.after > duration::zero())
      sup::later(self, e.after, drain_due{e.which, e.within});
    else
      ask_persister(self, e.which, e.within);
  }
  void operator()(const agent_core::save_newest&) const {
    sup::send(self, self->state->node.persister,
              messages::local<messages::SaveNewest>(self->state->ctx.path()));
  }
  void operator()(const agent_core::report& e) const {
    sup::send(self, self->state->node.uplink, e.message);
  }
  void operator()(const agent_core::remember& e) const {
    self->state->of.keeping->keep(underway_slot, e.what);
  }
  void operator()(const agent_core::watch& e) const {
    sup::send(self, self->state->node.worker_channel, e.what);
    sup::send(self, self->state->node.hang_watchdog, e.what);
  }
  void operator()(const agent_core::node_over& e) const { self->state->on_over(e.outcome); }
  void operator()(const agent_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const agent_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

/// What a crashed supervisor left. An agent that only restarts has lost its processes with its
/// predecessor: there is nothing to adopt for it, nor for a later one.
void adopt_what_is_left(self_ptr self) {
  auto& s = *self->state;
  const auto kept = std::exchange(s.inherited, {});
  if (kept)
    perform(self, s.core.adopt(sup::now(self), kept, s.of.processes->survivors()));
}

template<class T>
auto on(self_ptr self, agent_core::effects (agent_core::*event)(instant, const msg<T>&)) {
  return [self, event](const msg<T>& m) {
    perform(self, (self->state->core.*event)(sup::now(self), m));
  };
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, agent_options options,
                                     training_program what, world of, node_addresses node,
                                     std::function<void(const node_outcome&)> on_over) {
  sup::harden(self, ctx);
  const bool restarted = ctx.incarnation() > 0;
  auto inherited = restarted ? msg<messages::Underway>{} : of.keeping->kept(underway_slot);
  messages::author author(ctx.path());
  if (restarted)
    of.keeping->keep(underway_slot, author.write<messages::Underway>({}, [](auto) {}));
  const bool leftovers = restarted || of.keeping->is_successor();
  self->state.emplace(state{ctx,
                            agent_core(options, author, leftovers),
                            author,
                            std::move(what),
                            options,
                            std::move(of),
                            std::move(inherited),
                            std::move(node),
                            std::move(on_over),
                            {},
                            {},
                            {},
                            nullptr});
  if (restarted)
    sup::send(self, self->state->node.uplink,
              messages::local<messages::StateRenewed>(self->state->ctx.path()));
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      on(self, &agent_core::prepare),
      on(self, &agent_core::start),
      on(self, &agent_core::stop),
      on(self, &agent_core::end_wanted),
      on(self, &agent_core::leave_wanted),
      on(self, &agent_core::stand_by),
      on(self, &agent_core::conclude),
      on(self, &agent_core::end_worker),
      [self](const msg<messages::StateRequest>&) {
        adopt_what_is_left(self);
        return self->state->core.state(sup::now(self));
      },
      on(self, &agent_core::worker_started),
      [self](const msg<messages::WorkerEnded>& m) {
        perform(self, self->state->core.worker_ended(sup::now(self), m));
        return self->state->author.answer<messages::WorkerEndNoted>(m.envelope(), [](auto) {});
      },
      [self](const msg<messages::SnapshotWanted>&) {
        perform(self, self->state->core.snapshot_wanted(sup::now(self)));
      },
      [self](const msg<messages::WatchRequest>&) { return self->state->core.watched(); },
      [self](const msg<messages::GenerationEnded>& m) {
        generation_ended(self, m.envelope().about);
      },
      [self](const msg<messages::Interrupt>& m) {
        auto said = m.read();
        perform(self, self->state->core.interrupted(sup::now(self), said->getSignal(),
                                                    said->getEndsJob()));
      },
      [self](const msg<messages::WorkerSignal>& m) {
        perform(self, self->state->core.passed_on(sup::now(self), m.read()->getNumber()));
      },
      [self](const msg<messages::Abandon>& m) {
        perform(self, self->state->core.abandon(sup::now(self), m.read()->getReason().cStr()));
      },
      [self](strays_swept s) { perform(self, self->state->core.swept(sup::now(self), s.what)); },
      [self](const strays_awaited& s) {
        perform(self, self->state->core.left_behind(sup::now(self), s.what));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
      [self](drain_due d) { ask_persister(self, d.which, d.within); },
      [self](const store_opened& o) { take(self, o); },
      [self](handler_looked_for h) {
        perform(self,
                self->state->core.handler_looked_for(sup::now(self), h.which, h.local, h.there));
      },
      [self](group_gone) {
        self->state->group = sup::dynamic_handle{};
        generation_ended(self, self->state->started);
      },
  };
}

} // namespace

handle start(sup::context& ctx, agent_options options, training_program what, const world& of,
             const node_addresses& node, std::function<void(const node_outcome&)> on_over) {
  return ctx.spawn<handle>(behave, ctx, std::move(options), std::move(what), of, node,
                           std::move(on_over));
}

std::function<void(const sup::child_end&)> hears_of_ends(const sup::address<handle>& agent) {
  return [agent, author = messages::author("worker_group")](const sup::child_end& e) mutable {
    const auto which = generation_in(e.id);
    if (!which)
      return;
    const std::string why = e.why ? e.why->what : "";
    const auto ended =
        author.write<messages::GenerationEnded>(*which, [&why](auto b) { b.setWhy(why); });
    sup::post(agent, ended);
  };
}

} // namespace troupe::actors::agent
