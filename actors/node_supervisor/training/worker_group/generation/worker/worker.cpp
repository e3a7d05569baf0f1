#include "actors/node_supervisor/training/worker_group/generation/worker/worker.hpp"

#include "actors/node_supervisor/training/worker_group/generation/worker/worker_core.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <csignal>
#include <optional>

namespace troupe::actors::worker {

class owned_process;

struct exited {
  ports::exit_status status;
};
/// The process of a `begun` that no worker takes ends with it.
struct begun {
  std::shared_ptr<owned_process> process;
  result<std::int32_t> pid;
};
struct found_out {
  exit_report why;
};

} // namespace troupe::actors::worker

TROUPE_LOCAL_MESSAGE(troupe::actors::worker::exited)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker::begun)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker::found_out)

namespace troupe::actors::worker {

using messages::msg;

/// The process, and what is told to the program about it. Made and started aside; then the actor
/// that asked for it owns it, and if there is no such actor any more the process ends.
class owned_process {
 public:
  owned_process(std::shared_ptr<ports::process_host> host, training_program what, assignment place)
      : host_(std::move(host)), what_(std::move(what)), place_(std::move(place)) {}
  owned_process(const owned_process&) = delete;
  owned_process& operator=(const owned_process&) = delete;
  /// However the actor ends: its process does not outlive it.
  ~owned_process() {
    signal(SIGKILL, false);
    end();
  }

  result<std::int32_t> start(const ports::process_host::ended& on_end) {
    auto spec = what_.spec(place_);
    if (!spec)
      return tl::make_unexpected(spec.error());
    spec->label = place_.local;
    const auto process = host_->start(*spec, on_end);
    if (!process)
      return tl::make_unexpected(process.error());
    id_ = process->process;
    return process->pid;
  }
  std::int32_t adopt(const ports::survivor& left, const ports::process_host::ended& on_end) {
    what_.adopted(place_);
    id_ = left.process;
    host_->adopt(left.process, on_end);
    return left.pid;
  }
  void signal(int number, bool alone) const {
    if (id_ && alone)
      host_->signal_alone(*id_, number);
    else if (id_)
      host_->signal(*id_, number);
  }
  /// It is gone, or will never be.
  void end() {
    id_.reset();
    if (!std::exchange(ended_, true))
      what_.ended(place_);
  }

 private:
  std::shared_ptr<ports::process_host> host_;
  training_program what_;
  assignment place_;
  std::optional<ports::process_id> id_;
  bool ended_ = false;
};

namespace {

struct state {
  sup::context ctx;
  worker_core core;
  assignment place;
  training_program what;
  std::shared_ptr<ports::process_host> host;
  std::shared_ptr<owned_process> process; ///< null until it has begun
  sup::address<agent::handle> agent;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, exited, begun, found_out, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void perform(self_ptr self, const worker_core::effects& effects);

void find_out_why(self_ptr self, const ports::exit_status& status) {
  const auto& s = *self->state;
  s.host->aside([me = private_handle{self}, what = s.what, place = s.place, status] {
    sup::post(me, found_out{what.explain(place, status)});
  });
}

/// With the time, where the process has not said when it failed.
exit_report dated(self_ptr self, exit_report why) {
  if (why.unix_time_ms == 0)
    why.unix_time_ms = self->state->host->unix_time_ms();
  return why;
}

struct performer {
  self_ptr self;

  void operator()(const worker_core::signal& e) const {
    if (self->state->process)
      self->state->process->signal(e.number, e.alone);
  }
  void operator()(const worker_core::tell_start& e) const {
    sup::send(self, self->state->agent, e.message);
  }
  void operator()(const worker_core::explain& e) const { find_out_why(self, e.status); }
  void operator()(const worker_core::overdue& e) const {
    exit_report why;
    why.message = e.message;
    perform(self, self->state->core.unanswered(sup::now(self), dated(self, std::move(why))));
  }
  void operator()(const worker_core::tell_end& e) const {
    if (self->state->process)
      self->state->process->end();
    const auto go_on = [self = self] { perform(self, self->state->core.noted()); };
    sup::request(
        self, self->state->agent, limits::request_within, e.message,
        [go_on](const msg<messages::WorkerEndNoted>&) { go_on(); },
        // An agent that has ended needs not be told.
        [go_on](const error&) { go_on(); });
  }
  void operator()(const worker_core::quit& e) const {
    if (e.why)
      sup::stop(self, error{errc::closed, *e.why});
    else
      sup::stop(self);
  }
  void operator()(const worker_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const worker_core::effects& effects) {
  self->state->alarm.arm(self, self->state->core.next_wakeup());
  for (const auto& e : effects)
    std::visit(performer{self}, e);
}

/// The answer is `begun`; the process's end comes back as `exited`, which may be before that.
void take_process(self_ptr self, const std::optional<ports::survivor>& left) {
  auto& s = *self->state;
  s.core.asked(sup::now(self));
  s.alarm.arm(self, s.core.next_wakeup());
  s.host->aside([me = private_handle{self}, host = s.host, what = s.what, place = s.place, left] {
    const auto process = std::make_shared<owned_process>(host, what, place);
    const auto on_end = [me](ports::exit_status status) { sup::post(me, exited{status}); };
    sup::post(me, begun{process, left ? process->adopt(*left, on_end) : process->start(on_end)});
  });
}

void take(self_ptr self, const begun& b) {
  auto& s = *self->state;
  if (s.core.current_phase() != worker_core::phase::starting)
    return; // it is not waited for any more
  s.process = b.process;
  if (b.pid)
    perform(self, s.core.started(sup::now(self), *b.pid));
  else
    perform(self, s.core.not_started(sup::now(self), b.pid.error().what, s.host->unix_time_ms()));
}

void obey(self_ptr self, const sup::stop_order& order, duration stop_within) {
  auto& core = self->state->core;
  if (order.because == sup::stop_order::cause::shutdown)
    return perform(self, core.shut_down(sup::now(self)));
  perform(self, core.stop(sup::now(self), order.detail != 0 ? order.detail : SIGTERM,
                          order.within.value_or(stop_within)));
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, worker_slot at, options o,
                                     training_program what,
                                     std::shared_ptr<ports::process_host> processes,
                                     sup::address<agent::handle> agent) {
  sup::harden(self, ctx, [self, within = o.stop_within](const sup::stop_order& order) {
    obey(self, order, within);
  });
  self->state.emplace(state{ctx,
                            worker_core(at.place, messages::author(ctx.path())),
                            at.place,
                            std::move(what),
                            std::move(processes),
                            nullptr,
                            std::move(agent),
                            {}});
  take_process(self, at.process);
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const msg<messages::WorkerSignal>& m) {
        perform(self, self->state->core.pass_on(m.read()->getNumber(), m.read()->getAlone()));
      },
      [self](const exited& e) {
        perform(self, self->state->core.exited(sup::now(self), e.status));
      },
      [self](const begun& b) { take(self, b); },
      [self](const found_out& f) {
        perform(self, self->state->core.explained(sup::now(self), dated(self, f.why)));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

/// In place of a worker that crashed before it could say so; else it means nothing.
msg<messages::WorkerEnded> abandoned(const sup::context& ctx, const assignment& place) {
  return messages::author(ctx.path()).write<messages::WorkerEnded>(place.which, [&](auto b) {
    auto r = b.initReport();
    r.setLocalRank(place.local);
    r.setRank(place.rank);
    r.setExitCode(-SIGKILL);
    r.setMessage("the actor that owned it has ended");
  });
}

} // namespace

handle start(sup::context& ctx, const worker_slot& at, const options& o,
             const training_program& what, std::shared_ptr<ports::process_host> processes,
             const sup::address<agent::handle>& agent) {
  const auto me = ctx.spawn<handle>(behave, ctx, at, o, what, std::move(processes), agent);
  sup::when_ended(me, [say = abandoned(ctx, at.place), agent] { sup::post(agent, say); });
  return me;
}

} // namespace troupe::actors::worker
