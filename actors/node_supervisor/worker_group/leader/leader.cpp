#include "actors/node_supervisor/worker_group/leader/leader.hpp"

#include "actors/node_supervisor/addresses.hpp"
#include "actors/node_supervisor/worker_group/processes/worker_process/worker_process.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/spec.hpp"

#include <fmt/format.h>

#include <csignal>
#include <map>
#include <optional>
#include <utility>

namespace troupe::actors::leader {

struct strays_swept {
  std::size_t killed = 0;
};
struct drain_due {
  generation which;
  duration within{};
};

} // namespace troupe::actors::leader

TROUPE_LOCAL_MESSAGE(troupe::actors::leader::strays_swept)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::drain_due)

namespace troupe::actors::leader {

namespace {

struct worker {
  assignment place;
  sup::address<worker_process::handle> where;
  /// How to end it, if that was decided before it was there.
  std::optional<worker_process::end> early_end;
};

struct state {
  sup::context ctx;
  leader_core core;
  program what;
  std::string address;
  duration stop_within;
  std::uint16_t store_port;
  std::shared_ptr<ports::process_host> processes;
  std::shared_ptr<ports::store_host> stores;
  std::shared_ptr<ports::keeping> keeping;
  /// Until it is looked at.
  messages::any_msg inherited;
  node_addresses node;
  std::function<void(const node_outcome&)> on_over;
  std::map<local_rank, worker> workers;
  /// Of the generation the core is at; ends with this actor.
  std::unique_ptr<ports::open_store> store;
};

using private_handle = sup::widened<handle, strays_swept, drain_due>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void perform(self_ptr self, const leader_core::effects& effects);
void reach_worker(self_ptr self, const assignment& place);

void tell_end(const state& s, generation which, local_rank local) {
  const auto known = s.workers.find(local);
  if (known != s.workers.end() && known->second.place.which == which)
    s.what.ended(known->second.place);
}

void not_started(self_ptr self, const process_not_started& p) {
  auto& s = *self->state;
  tell_end(s, p.which, p.local);
  perform(self, s.core.worker_not_started(sup::now(self), p.which, p.local, p.why,
                                          s.processes->unix_time_ms()));
}

/// An actor for a process that is to be started, or is there already.
void own_worker(self_ptr self, const assignment& place, const worker_process::origin& from) {
  auto& s = *self->state;
  auto& w = s.workers[place.local];
  w = worker{place, {}, {}};
  // It needs a little longer than its process may take, to tell how that ended.
  const auto child = sup::worker(
      fmt::format("worker_process g{} rank {}", place.which.value, place.rank),
      sup::restart::temporary, sup::stop_within{limits::kill_within}, w.where,
      [place, from, processes = s.processes, leader = s.node.leader](sup::context& ctx) {
        return worker_process::start(ctx, place, from, processes, leader);
      });
  sup::request(
      self, s.node.processes, limits::start_within, sup::start_child{child},
      [self, place](const sup::done&) { reach_worker(self, place); },
      [self, place](const error& e) {
        not_started(self, {place.which, place.local, e.what});
      });
}

void start_worker(self_ptr self, const assignment& place) {
  auto& s = *self->state;
  s.workers[place.local] = worker{place, {}, {}};
  auto spec = s.what.spec(place);
  if (!spec)
    return not_started(self, {place.which, place.local, spec.error().what});
  spec->label = place.local;
  own_worker(self, place, *spec);
}

void end_worker(self_ptr self, const leader_core::end_worker& e) {
  auto& w = self->state->workers.at(e.local);
  const worker_process::end order{e.signal, e.within};
  if (!sup::send(self, w.where, order))
    w.early_end = order;
}

/// The actor is there now: what was decided about it meanwhile reaches it.
void reach_worker(self_ptr self, const assignment& place) {
  auto& w = self->state->workers.at(place.local);
  if (w.early_end && w.place.which == place.which)
    sup::send(self, w.where, *std::exchange(w.early_end, std::nullopt));
}

void worker_started(self_ptr self, const process_started& p) {
  perform(self, self->state->core.worker_started(sup::now(self), p.which, p.local, p.pid));
}

void worker_ended(self_ptr self, const process_ended& p) {
  auto& s = *self->state;
  const auto known = s.workers.find(p.local);
  if (known == s.workers.end() || known->second.place.which != p.which)
    return;
  tell_end(s, p.which, p.local);
  auto why = p.status.success() ? obituary{} : s.what.explain(known->second.place, p.status);
  if (why.unix_time_ms == 0)
    why.unix_time_ms = s.processes->unix_time_ms();
  perform(self, s.core.worker_ended(sup::now(self), p.which, p.local, p.status, why));
}

void worker_abandoned(self_ptr self, const process_abandoned& p) {
  auto& s = *self->state;
  tell_end(s, p.which, p.local);
  perform(self,
          s.core.worker_ended(
              sup::now(self), p.which, p.local, {true, SIGKILL},
              {"the actor that owned it has ended", {}, {}, s.processes->unix_time_ms(), {}}));
}

void ask_saver(self_ptr self, generation which, duration within) {
  sup::request(
      self, self->state->node.checkpoint_saver, within, checkpoint_saver::drain{},
      [self, which](checkpoint_saver::drained) {
        perform(self, self->state->core.drained(sup::now(self), which, std::nullopt));
      },
      [self, which](const error& e) {
        perform(self, self->state->core.drained(sup::now(self), which, e));
      });
}

struct performer {
  self_ptr self;

  void operator()(const leader_core::start_worker& e) const { start_worker(self, e.place); }
  void operator()(const leader_core::adopt_worker& e) const {
    self->state->what.adopted(e.place);
    own_worker(self, e.place, e.process);
  }
  void operator()(const leader_core::end_worker& e) const { end_worker(self, e); }
  void operator()(const leader_core::signal_worker& e) const {
    sup::send(self, self->state->workers.at(e.local).where, worker_process::pass_on{e.signal});
  }
  void operator()(const leader_core::sweep&) const {
    self->state->processes->sweep(
        [me = private_handle{self}](std::size_t killed) { sup::post(me, strays_swept{killed}); });
  }
  void operator()(const leader_core::open_store& e) const {
    auto& s = *self->state;
    auto opened = s.stores->open({e.reach, s.address, s.store_port});
    if (!opened)
      sup::tell_log(s.ctx, log::level::error, "no_store", opened.error().what);
    s.store = opened ? std::move(*opened) : nullptr;
    perform(self, s.core.store_placed(sup::now(self), s.store ? s.store->port() : 0));
  }
  void operator()(const leader_core::adopt_store& e) const {
    auto& s = *self->state;
    s.store = s.stores->adopt(e.port);
    if (!s.store)
      sup::tell_log(s.ctx, log::level::warning, "store_lost",
                    "the workers' store has ended; what they look for in it they will not find");
  }
  void operator()(const leader_core::close_store&) const { self->state->store.reset(); }
  void operator()(const leader_core::pick_port&) const {
    auto& s = *self->state;
    const auto port =
        s.store_port ? result<std::uint16_t>(s.store_port) : s.processes->free_port(s.address);
    if (!port)
      sup::tell_log(s.ctx, log::level::error, "no_free_port", port.error().what);
    perform(self, s.core.store_placed(sup::now(self), port.value_or(0)));
  }
  void operator()(const leader_core::drain& e) const {
    if (e.after > duration::zero())
      sup::later(self, e.after, drain_due{e.which, e.within});
    else
      ask_saver(self, e.which, e.within);
  }
  void operator()(const leader_core::save_newest&) const {
    sup::send(self, self->state->node.checkpoint_saver, checkpoint_saver::save_newest{});
  }
  void operator()(const leader_core::report& e) const {
    sup::send(self, self->state->node.uplink, e.message);
  }
  void operator()(const leader_core::remember& e) const {
    self->state->keeping->keep(ports::kept_as::underway, e.what.any());
  }
  void operator()(const leader_core::node_over& e) const { self->state->on_over(e.outcome); }
  void operator()(const leader_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const leader_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
}

/// What a crashed supervisor left. A leader that only restarts has ended its processes: there is
/// nothing to adopt for it, nor for a later one.
void adopt_what_is_left(self_ptr self) {
  auto& s = *self->state;
  const auto kept = std::exchange(s.inherited, {});
  if (kept.is<messages::Underway>())
    perform(self,
            s.core.adopt(sup::now(self), kept.as<messages::Underway>(), s.processes->survivors()));
}

template<class T>
auto on(self_ptr self,
        leader_core::effects (leader_core::*event)(instant, const messages::msg<T>&)) {
  return [self, event](const messages::msg<T>& m) {
    perform(self, (self->state->core.*event)(sup::now(self), m));
  };
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, leader_options options,
                                     program what, std::string address,
                                     std::shared_ptr<ports::process_host> processes,
                                     std::shared_ptr<ports::store_host> stores,
                                     std::shared_ptr<ports::keeping> keeping, node_addresses node,
                                     std::function<void(const node_outcome&)> on_over) {
  sup::harden(self, ctx);
  const bool restarted = ctx.incarnation() > 0;
  auto inherited = restarted ? messages::any_msg{} : keeping->kept(ports::kept_as::underway);
  messages::author author(ctx.path());
  if (restarted)
    keeping->keep(ports::kept_as::underway,
                  author.write<messages::Underway>({}, [](auto) {}).any());
  self->state.emplace(state{ctx,
                            leader_core(options, author, restarted || keeping->is_successor()),
                            std::move(what),
                            std::move(address),
                            options.stop_within,
                            options.store_port,
                            std::move(processes),
                            std::move(stores),
                            std::move(keeping),
                            std::move(inherited),
                            std::move(node),
                            std::move(on_over),
                            {},
                            nullptr});
  if (restarted)
    sup::send(self, self->state->node.uplink, uplink::renew{});
  return {
      [self](sup::describe) { return self->state->core.in_words(); },
      on(self, &leader_core::prepare),
      on(self, &leader_core::start),
      on(self, &leader_core::stop),
      on(self, &leader_core::stand_by),
      on(self, &leader_core::conclude),
      [self](const messages::msg<messages::StateRequest>&) {
        adopt_what_is_left(self);
        return self->state->core.state(sup::now(self));
      },
      [self](const process_started& p) { worker_started(self, p); },
      [self](const process_not_started& p) { not_started(self, p); },
      [self](const process_ended& p) { worker_ended(self, p); },
      [self](const process_abandoned& p) { worker_abandoned(self, p); },
      [self](interrupt i) {
        perform(self, self->state->core.interrupted(sup::now(self), i.signal));
      },
      [self](pass_on p) { perform(self, self->state->core.passed_on(sup::now(self), p.signal)); },
      [self](const abandon& a) {
        perform(self, self->state->core.abandon(sup::now(self), a.reason));
      },
      [self](drain_due d) { ask_saver(self, d.which, d.within); },
      [self](strays_swept s) { perform(self, self->state->core.swept(sup::now(self), s.killed)); },
  };
}

} // namespace

handle start(sup::context& ctx, leader_options options, program what, std::string address,
             const std::shared_ptr<ports::process_host>& processes,
             const std::shared_ptr<ports::store_host>& stores,
             const std::shared_ptr<ports::keeping>& keeping, const node_addresses& node,
             std::function<void(const node_outcome&)> on_over) {
  return ctx.spawn<handle>(behave, ctx, std::move(options), std::move(what), std::move(address),
                           processes, stores, keeping, node, std::move(on_over));
}

} // namespace troupe::actors::leader
