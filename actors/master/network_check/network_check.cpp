#include "actors/master/network_check/network_check.hpp"

#include "actors/master/addresses.hpp"
#include "runtime/base/random.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>
#include <utility>

namespace troupe::actors::network_check {

namespace {

using messages::msg;
using checked = msg<messages::NodesChecked>;

/// Nodes may still be at a check of another master, or of the incarnation before: so numbers begin
/// where none of theirs are.
std::uint64_t first_number(const master_addresses& master, const sup::context& ctx) {
  constexpr std::uint64_t checks_of_one = 1 << 16;
  return random_source(master.commands_as.value + ctx.incarnation()).next() / checks_of_one *
         checks_of_one;
}

struct state {
  sup::context ctx;
  check_run_core core;
  std::shared_ptr<ports::cluster> cluster;
  master_addresses master;
  sup::promise<checked> asked; ///< the newest question
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const check_run_core::say& e) const {
    sup::send(self, self->state->master.membership, membership::dispatch{{e.to}, e.message});
  }
  void operator()(const check_run_core::ask_witness& e) const {
    sup::send(self, self->state->master.witness, e.message.as<messages::GroupProbeWanted>());
  }
  void operator()(const check_run_core::answer& e) const { self->state->asked.deliver(e.message); }
  void operator()(const check_run_core::mark& e) const {
    self->state->cluster->mark_faulty(e.node, e.address, e.reason);
  }
  void operator()(const check_run_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const check_run_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

template<class T>
auto on(self_ptr self, check_run_core::effects (check_run_core::*event)(instant, const msg<T>&)) {
  return [self, event](const msg<T>& m) {
    perform(self, (self->state->core.*event)(sup::now(self), m));
  };
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, network_check_options options,
                                     std::shared_ptr<ports::cluster> cluster,
                                     master_addresses master) {
  sup::harden(self, ctx);
  const auto first = first_number(master, ctx);
  self->state.emplace(state{
      ctx,
      check_run_core(messages::author(ctx.path(), master.commands_as), std::move(options), first),
      std::move(cluster),
      std::move(master),
      {},
      {}});
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const msg<messages::CheckWanted>& m) -> sup::answer<checked> {
        auto& s = *self->state;
        const auto promise = sup::promise_answer<checked>(self);
        s.asked = promise;
        perform(self, s.core.wanted(sup::now(self), m));
        return promise;
      },
      on(self, &check_run_core::node_probed),
      on(self, &check_run_core::group_probed),
      on(self, &check_run_core::node_lost),
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const network_check_options& options,
             const std::shared_ptr<ports::cluster>& cluster, const master_addresses& master) {
  return ctx.spawn<handle>(behave, ctx, options, cluster, master);
}

} // namespace troupe::actors::network_check
