#include "actors/node_supervisor/hang_watchdog/hang_watchdog.hpp"

#include "actors/limits.hpp"
#include "actors/node_supervisor/addresses.hpp"
#include "diag/stacks/merged_message.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace troupe::actors::hang_watchdog {

struct looked {
  std::uint64_t question = 0;
  std::vector<diag::process_look> looks;
};
struct dumped {
  std::uint64_t number = 0;
  generation about;
  diag::dump_result what;
};

} // namespace troupe::actors::hang_watchdog

TROUPE_LOCAL_MESSAGE(troupe::actors::hang_watchdog::looked)
TROUPE_LOCAL_MESSAGE(troupe::actors::hang_watchdog::dumped)

namespace troupe::actors::hang_watchdog {

namespace {

using messages::msg;

struct state {
  sup::context ctx;
  hang_watchdog_core core;
  node_name node;
  messages::author author;
  std::shared_ptr<diag::progress_host> host;
  node_addresses at;
  std::uint32_t world_size = 0;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, looked, dumped, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void perform(self_ptr self, const hang_watchdog_core::effects& effects);

/// What this node's ranks were doing, as one: so the master merges nodes, and not ranks.
void send_stacks(self_ptr self, const dumped& d) {
  auto& s = *self->state;
  diag::merged_stacks all;
  all.world_size = s.world_size;
  for (const auto& process : d.what.stacks)
    all.add(process);
  for (const auto& line : d.what.missing)
    all.add_missing(line, {});
  if (d.what.stacks.empty() && d.what.missing.empty())
    all.add_missing(fmt::format("no training process runs on node {}", s.node), {});
  const auto answer = s.author.write<messages::MergedStacks>(d.about, [&](auto b) {
    diag::write_merged(all, b);
    b.setNode(s.node);
    b.setDump(d.number);
  });
  sup::send(self, s.at.uplink, answer.any());
}

struct performer {
  self_ptr self;

  void operator()(const hang_watchdog_core::watch& e) const {
    self->state->host->watch(e.processes);
  }
  void operator()(const hang_watchdog_core::read& e) const {
    auto& s = *self->state;
    perform(self, s.core.pages_read(sup::now(self), s.host->read(e.local_ranks)));
  }
  void operator()(const hang_watchdog_core::look& e) const {
    self->state->host->look(e.local_ranks, [me = private_handle{self}, question = e.question](
                                               std::vector<diag::process_look> looks) {
      sup::post(me, looked{question, std::move(looks)});
    });
  }
  void operator()(const hang_watchdog_core::dump& e) const {
    self->state->host->dump(
        e.local_ranks, e.within,
        [me = private_handle{self}, number = e.number, about = e.about](diag::dump_result what) {
          sup::post(me, dumped{number, about, std::move(what)});
        });
  }
  void operator()(const hang_watchdog_core::report& e) const {
    sup::send(self, self->state->at.uplink, e.message);
  }
  void operator()(const hang_watchdog_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const hang_watchdog_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

void take_watched(self_ptr self, const msg<messages::Watched>& m) {
  self->state->world_size = m.read()->getWorldSize();
  perform(self, self->state->core.watched(sup::now(self), m));
}

/// What the agent said while no watchdog was there is lost. At the node's start nothing runs, and
/// the agent speaks first.
void ask_agent(self_ptr self) {
  auto& s = *self->state;
  sup::request(
      self, s.at.agent, limits::request_within,
      s.author.write<messages::WatchRequest>({}, [](auto) {}),
      [self](const msg<messages::Watched>& m) { take_watched(self, m); },
      [](const error&) { /* it says by itself what it starts */ });
}

template<class T>
auto on(self_ptr self,
        hang_watchdog_core::effects (hang_watchdog_core::*event)(instant, const msg<T>&)) {
  return [self, event](const msg<T>& m) {
    perform(self, (self->state->core.*event)(sup::now(self), m));
  };
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, node_name node,
                                     const watch_policy& policy,
                                     std::shared_ptr<diag::progress_host> host, node_addresses at) {
  sup::harden(self, ctx);
  messages::author author(ctx.path());
  self->state.emplace(state{ctx,
                            hang_watchdog_core(node, author, policy),
                            node,
                            author,
                            std::move(host),
                            std::move(at),
                            0,
                            {}});
  ask_agent(self);
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const msg<messages::Watched>& m) { take_watched(self, m); },
      on(self, &hang_watchdog_core::progress_wanted),
      on(self, &hang_watchdog_core::stacks_wanted),
      on(self, &hang_watchdog_core::diagnosed),
      on(self, &hang_watchdog_core::cleared),
      [self](const msg<messages::MasterLinked>&) {
        perform(self, self->state->core.linked(sup::now(self)));
      },
      [self](const looked& l) {
        perform(self, self->state->core.looked(sup::now(self), l.question, l.looks));
      },
      [self](const dumped& d) { send_stacks(self, d); },
      [self](sup::wake w) {
        auto& s = *self->state;
        if (s.alarm.due(w))
          perform(self, s.core.tick(sup::now(self), s.host->slept()));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const node_name& node, const watch_policy& policy,
             const std::shared_ptr<diag::progress_host>& host, const node_addresses& at) {
  return ctx.spawn<handle>(behave, ctx, node, policy, host, at);
}

} // namespace troupe::actors::hang_watchdog
