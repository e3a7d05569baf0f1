#include "actors/node_supervisor/worker_channel/worker_channel.hpp"

#include "actors/limits.hpp"
#include "actors/node_supervisor/addresses.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <optional>
#include <utility>

namespace troupe::actors::worker_channel {

struct arrived {
  ports::worker_peer peer;
};
struct said {
  ports::worker_link from = 0;
  messages::any_msg what;
};
struct closed {
  ports::worker_link which = 0;
};
struct kept {
  result<std::string> directory;
};
struct crashes_read {
  std::uint64_t number = 0;
  std::vector<diag::crash_report> reports;
};

} // namespace troupe::actors::worker_channel

TROUPE_LOCAL_MESSAGE(troupe::actors::worker_channel::arrived)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker_channel::said)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker_channel::closed)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker_channel::kept)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker_channel::crashes_read)

namespace troupe::actors::worker_channel {

namespace {

using messages::msg;

struct state {
  sup::context ctx;
  worker_channel_core core;
  messages::author author;
  std::shared_ptr<ports::worker_links> links;
  std::shared_ptr<diag::progress_host> stacks;
  node_addresses at;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, arrived, said, closed, kept, crashes_read, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const worker_channel_core::send& e) const {
    self->state->links->send(e.to, e.message);
  }
  void operator()(const worker_channel_core::close& e) const { self->state->links->close(e.which); }
  void operator()(const worker_channel_core::keep& e) const {
    self->state->links->keep(e.dump, e.records,
                             [me = private_handle{self}](result<std::string> directory) {
                               sup::post(me, kept{std::move(directory)});
                             });
  }
  void operator()(const worker_channel_core::read_stacks& e) const {
    self->state->stacks->read_crashes(
        count_of(e.about), e.processes, e.within,
        [me = private_handle{self}, number = e.number](std::vector<diag::crash_report> reports) {
          sup::post(me, crashes_read{number, std::move(reports)});
        });
  }
  void operator()(const worker_channel_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const worker_channel_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

/// What the agent said while no such actor was there is lost.
void ask_agent(self_ptr self) {
  auto& s = *self->state;
  sup::request(
      self, s.at.agent, limits::request_within,
      s.author.write<messages::WatchRequest>({}, [](auto) {}),
      [self](const msg<messages::Watched>& m) {
        perform(self, self->state->core.found(sup::now(self), m));
      },
      [](const error&) { /* it says by itself what it starts */ });
}

void listen(self_ptr self) {
  ports::worker_link_events events;
  const private_handle me{self};
  events.on_arrived = [me](const ports::worker_peer& peer) { sup::post(me, arrived{peer}); };
  events.on_message = [me](ports::worker_link from, const messages::any_msg& m) {
    sup::post(me, said{from, m});
  };
  events.on_closed = [me](ports::worker_link which) { sup::post(me, closed{which}); };
  self->state->links->listen(std::move(events));
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx,
                                     std::shared_ptr<ports::worker_links> links,
                                     std::shared_ptr<diag::progress_host> stacks,
                                     node_addresses at) {
  sup::harden(self, ctx);
  messages::author author(ctx.path());
  self->state.emplace(state{ctx,
                            worker_channel_core(author, sup::now(self)),
                            author,
                            std::move(links),
                            std::move(stacks),
                            std::move(at),
                            {}});
  listen(self);
  ask_agent(self);
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const msg<messages::Watched>& m) {
        perform(self, self->state->core.watched(sup::now(self), m));
      },
      [self](const msg<messages::StacksWanted>& m) {
        perform(self, self->state->core.stacks_wanted(sup::now(self), m));
      },
      [self](const arrived& a) {
        perform(self, self->state->core.arrived(sup::now(self), a.peer));
      },
      [self](const said& m) {
        perform(self, self->state->core.said(sup::now(self), m.from, m.what));
      },
      [self](const closed& c) { perform(self, self->state->core.closed(sup::now(self), c.which)); },
      [self](const kept& k) { perform(self, self->state->core.kept(k.directory)); },
      [self](const crashes_read& c) {
        perform(self, self->state->core.crashes_read(c.number, c.reports));
      },
      [self](sup::wake w) {
        auto& s = *self->state;
        if (s.alarm.due(w))
          perform(self, s.core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const std::shared_ptr<ports::worker_links>& links,
             const std::shared_ptr<diag::progress_host>& stacks, const node_addresses& at) {
  return ctx.spawn<handle>(behave, ctx, links, stacks, at);
}

} // namespace troupe::actors::worker_channel
