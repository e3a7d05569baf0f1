#include "actors/node_supervisor/neighbours/neighbours.hpp"

#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <map>
#include <optional>
#include <utility>

namespace troupe::actors::neighbours {

using link_id = neighbours_core::link_id;

struct arrived {
  ports::peer peer;
};
struct dialled {
  link_id link = 0;
  result<ports::connection_ptr> how;
};
struct said {
  link_id link = 0;
  messages::any_msg message;
};
struct gone {
  link_id link = 0;
};

} // namespace troupe::actors::neighbours

TROUPE_LOCAL_MESSAGE(troupe::actors::neighbours::arrived)
TROUPE_LOCAL_MESSAGE(troupe::actors::neighbours::dialled)
TROUPE_LOCAL_MESSAGE(troupe::actors::neighbours::said)
TROUPE_LOCAL_MESSAGE(troupe::actors::neighbours::gone)

namespace troupe::actors::neighbours {

namespace {

struct state {
  sup::context ctx;
  neighbours_core core;
  std::shared_ptr<ports::bulk_links> bulk;
  uplink_of_node uplink;
  std::map<link_id, ports::connection_ptr> links; ///< bounded by what the core lets in
  link_id last_arrived = 0;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, arrived, dialled, said, gone, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void open(self_ptr self, link_id link, const ports::connection_ptr& connection) {
  const private_handle me{self};
  self->state->links.emplace(link, connection);
  connection->open({
      [me, link](messages::any_msg m) {
        sup::post(me, said{link, std::move(m)});
      },
      [me, link](const ports::link_ending&) { sup::post(me, gone{link}); },
  });
}

struct performer {
  self_ptr self;

  void operator()(const neighbours_core::dial& e) const {
    self->state->bulk->dial(
        {e.host, e.port}, ports::bulk_purpose::NEIGHBOURS,
        [me = private_handle{self}, link = e.link](result<ports::connection_ptr> how) {
          sup::post(me, dialled{link, std::move(how)});
        });
  }
  void operator()(const neighbours_core::say& e) const {
    // A link that takes no more closes itself; `gone` follows.
    if (const auto at = self->state->links.find(e.link); at != self->state->links.end())
      (void)at->second->send(e.message);
  }
  void operator()(const neighbours_core::close& e) const {
    const auto closed = self->state->links.extract(e.link);
    if (!closed.empty())
      closed.mapped()->close(e.reason);
  }
  void operator()(const neighbours_core::tell& e) const { self->state->uplink.tell(e.message); }
};

void perform(self_ptr self, const neighbours_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

void take_peer(self_ptr self, const arrived& a) {
  const auto link = ++self->state->last_arrived;
  open(self, link, a.peer.link);
  perform(self, self->state->core.arrived(sup::now(self), link));
}

void take_dialled(self_ptr self, const dialled& d) {
  auto& s = *self->state;
  if (!d.how)
    return perform(self, s.core.not_connected(sup::now(self), d.link,
                                              d.how.error().code == errc::closed ||
                                                  d.how.error().code == errc::refused));
  open(self, d.link, *d.how);
  perform(self, s.core.connected(sup::now(self), d.link));
}

void hear(self_ptr self, const said& m) {
  auto& s = *self->state;
  const auto at = s.links.find(m.link);
  if (at == s.links.end())
    return;
  const auto link = at->second;
  perform(self, s.core.said(sup::now(self), m.link, m.message));
  link->taken();
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, duration lease,
                                     std::shared_ptr<ports::bulk_links> bulk,
                                     uplink_of_node uplink) {
  sup::harden(self, ctx);
  bulk->serve(ports::bulk_purpose::NEIGHBOURS,
              [me = private_handle{self}](ports::peer p) { sup::post(me, arrived{std::move(p)}); });
  self->state.emplace(state{ctx,
                            neighbours_core(messages::author(ctx.path()), lease),
                            std::move(bulk),
                            std::move(uplink),
                            {},
                            0,
                            {}});
  self->state->uplink.ask(messages::local<messages::ReachRequest>(ctx.path(), [](auto) {}));
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::MasterReach>& m) {
        perform(self, self->state->core.reach(sup::now(self), m));
      },
      [self](const arrived& a) { take_peer(self, a); },
      [self](const dialled& d) { take_dialled(self, d); },
      [self](const said& m) { hear(self, m); },
      [self](const gone& g) {
        self->state->links.erase(g.link);
        perform(self, self->state->core.gone(sup::now(self), g.link));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, duration lease, const std::shared_ptr<ports::bulk_links>& bulk,
             uplink_of_node uplink) {
  return ctx.spawn<handle>(behave, ctx, lease, bulk, std::move(uplink));
}

} // namespace troupe::actors::neighbours
