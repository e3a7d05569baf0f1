#include "actors/node_supervisor/worker_group/processes/worker_process/worker_process.hpp"

#include "actors/node_supervisor/worker_group/processes/worker_process/worker_process_core.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <csignal>
#include <optional>

namespace troupe::actors::worker_process {

struct exited {
  ports::exit_status status;
};

} // namespace troupe::actors::worker_process

TROUPE_LOCAL_MESSAGE(troupe::actors::worker_process::exited)

namespace troupe::actors::worker_process {

namespace {

/// The process, for as long as its actor lives.
class owned_process {
 public:
  owned_process(std::shared_ptr<ports::process_host> host, ports::process_id id)
      : host_(std::move(host)), id_(id) {}
  owned_process(owned_process&& other) noexcept : host_(std::move(other.host_)), id_(other.id_) {}
  /// However the actor ends: its process does not outlive it.
  ~owned_process() {
    if (host_)
      host_->signal(id_, SIGKILL);
  }
  void signal(int number) const { host_->signal(id_, number); }

 private:
  std::shared_ptr<ports::process_host> host_;
  ports::process_id id_;
};

struct state {
  sup::context ctx;
  assignment place;
  worker_process_core core;
  owned_process process;
  sup::address<leader::handle> leader;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, exited, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const worker_process_core::signal& e) const {
    self->state->process.signal(e.number);
  }
  void operator()(const worker_process_core::ended& e) const {
    const auto& place = self->state->place;
    sup::send(self, self->state->leader, leader::process_ended{place.which, place.local, e.status});
    sup::stop(self);
  }
  void operator()(const worker_process_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const worker_process_core::effects& effects) {
  self->state->alarm.arm(self, self->state->core.next_wakeup());
  for (const auto& e : effects)
    std::visit(performer{self}, e);
}

/// Starts or adopts the process; its end comes back as `exited`, also if that is before this actor
/// has handled anything.
result<ports::started> take_process(self_ptr self, const origin& from,
                                    ports::process_host& processes) {
  const auto on_end = [me = private_handle{self}](ports::exit_status status) {
    sup::post(me, exited{status});
  };
  if (const auto* spec = std::get_if<ports::process_spec>(&from))
    return processes.start(*spec, on_end);
  const auto& survivor = std::get<ports::survivor>(from);
  processes.adopt(survivor.process, on_end);
  return ports::started{survivor.process, survivor.pid};
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, assignment place, origin from,
                                     std::shared_ptr<ports::process_host> processes,
                                     sup::address<leader::handle> leader) {
  // Its supervisor may not think it gone before its process is.
  sup::harden(self, ctx, [self] {
    perform(self, self->state->core.end(sup::now(self), SIGKILL, limits::kill_within));
  });
  const auto process = take_process(self, from, *processes);
  if (!process) {
    sup::send(self, leader,
              leader::process_not_started{place.which, place.local, process.error().what});
    sup::stop(self);
    return private_handle::behavior_type::make_empty_behavior();
  }
  self->state.emplace(state{ctx,
                            place,
                            worker_process_core(process->pid, place.rank),
                            owned_process(std::move(processes), process->process),
                            leader,
                            {}});
  sup::send(self, leader, leader::process_started{place.which, place.local, process->pid});
  return {
      [self](sup::describe) { return self->state->core.in_words(); },
      [self](const end& e) {
        perform(self, self->state->core.end(sup::now(self), e.signal, e.within));
      },
      [self](pass_on p) { perform(self, self->state->core.pass_on(p.signal)); },
      [self](const exited& e) {
        perform(self, self->state->core.exited(sup::now(self), e.status));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const assignment& place, origin from,
             std::shared_ptr<ports::process_host> processes, sup::address<leader::handle> leader) {
  const auto me =
      ctx.spawn<handle>(behave, ctx, place, std::move(from), std::move(processes), leader);
  sup::when_ended(me, [place, leader] {
    sup::post(leader, leader::process_abandoned{place.which, place.local});
  });
  return me;
}

} // namespace troupe::actors::worker_process
