#include "actors/node_supervisor/network_prober/network_prober.hpp"

#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <map>
#include <optional>
#include <utility>

namespace troupe::actors::network_prober {

using link_id = network_prober_core::link_id;

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
  std::string why;
};
struct node_probed {
  messages::msg<messages::NodeProbed> report;
};
struct key_made {
  std::uint64_t number = 0;
  std::string key;
};
struct devices_probed {
  std::uint64_t number = 0;
  messages::msg<messages::GroupProbed> report;
};

} // namespace troupe::actors::network_prober

TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::arrived)
TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::dialled)
TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::said)
TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::gone)
TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::node_probed)
TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::key_made)
TROUPE_LOCAL_MESSAGE(troupe::actors::network_prober::devices_probed)

namespace troupe::actors::network_prober {

namespace {

struct state {
  sup::context ctx;
  network_prober_core core;
  std::shared_ptr<probe::probe_host> host;
  std::shared_ptr<ports::bulk_links> bulk;
  std::function<void(const messages::any_msg&)> report;
  std::map<link_id, ports::connection_ptr> links; ///< bounded by what the core lets wait
  link_id last_arrived = 0;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, arrived, dialled, said, gone, node_probed, key_made,
                                    devices_probed, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void open(self_ptr self, link_id link, const ports::connection_ptr& connection) {
  const private_handle me{self};
  self->state->links.emplace(link, connection);
  connection->open({
      [me, link](messages::any_msg m) {
        sup::post(me, said{link, std::move(m)});
      },
      [me, link](ports::link_ending how) {
        sup::post(me, gone{link, std::move(how.reason)});
      },
  });
}

struct performer {
  self_ptr self;

  void operator()(const network_prober_core::probe_node& e) const {
    self->state->host->probe_node(
        e.wanted, [me = private_handle{self}](const messages::msg<messages::NodeProbed>& report) {
          sup::post(me, node_probed{report});
        });
  }
  void operator()(const network_prober_core::probe_devices& e) const {
    const private_handle me{self};
    self->state->host->probe_group(
        e.wanted,
        [me, number = e.number](const std::string& key) {
          sup::post(me, key_made{number, key});
        },
        [me, number = e.number](const messages::msg<messages::GroupProbed>& report) {
          sup::post(me, devices_probed{number, report});
        });
  }
  void operator()(const network_prober_core::end_probe&) const { self->state->host->end_probe(); }
  void operator()(const network_prober_core::dial& e) const {
    self->state->bulk->dial(
        {e.host, e.port}, ports::bulk_purpose::PROBE,
        [me = private_handle{self}, link = e.link](result<ports::connection_ptr> how) {
          sup::post(me, dialled{link, std::move(how)});
        });
  }
  void operator()(const network_prober_core::say& e) const {
    // A link that takes no more closes itself; `gone` follows.
    if (const auto at = self->state->links.find(e.link); at != self->state->links.end())
      (void)at->second->send(e.message);
  }
  void operator()(const network_prober_core::close& e) const {
    const auto closed = self->state->links.extract(e.link);
    if (!closed.empty())
      closed.mapped()->close(e.reason);
  }
  void operator()(const network_prober_core::report& e) const { self->state->report(e.message); }
};

void perform(self_ptr self, const network_prober_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

void take_peer(self_ptr self, const arrived& a) {
  auto& s = *self->state;
  const auto link = ++s.last_arrived;
  open(self, link, a.peer.link);
  perform(self, s.core.arrived(sup::now(self), link, a.peer.hello.read()->getNode().cStr()));
}

void take_dialled(self_ptr self, const dialled& d) {
  auto& s = *self->state;
  if (!d.how)
    return perform(self, s.core.not_connected(sup::now(self), d.link, d.how.error().what,
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

private_handle::behavior_type behave(self_ptr self, sup::context ctx, node_name node,
                                     std::shared_ptr<probe::probe_host> host,
                                     std::shared_ptr<ports::bulk_links> bulk, master_place master) {
  sup::harden(self, ctx);
  const auto pay = [bulk](instant now, std::uint64_t bytes) {
    const auto when = bulk->may_send(now, bytes);
    if (when <= now)
      bulk->sent(now, bytes);
    return when;
  };
  bulk->serve(ports::bulk_purpose::PROBE,
              [me = private_handle{self}](ports::peer p) { sup::post(me, arrived{std::move(p)}); });
  self->state.emplace(
      state{ctx,
            network_prober_core(std::move(node), messages::author(ctx.path()), pay, master.host),
            std::move(host),
            std::move(bulk),
            std::move(master.report),
            {},
            0,
            {}});
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::NodeProbeWanted>& m) {
        perform(self, self->state->core.node_probe_wanted(sup::now(self), m));
      },
      [self](const messages::msg<messages::GroupProbeWanted>& m) {
        perform(self, self->state->core.group_probe_wanted(sup::now(self), m));
      },
      [self](const arrived& a) { take_peer(self, a); },
      [self](const dialled& d) { take_dialled(self, d); },
      [self](const said& m) { hear(self, m); },
      [self](const gone& g) {
        self->state->links.erase(g.link);
        perform(self, self->state->core.gone(sup::now(self), g.link, g.why));
      },
      [self](const node_probed& p) {
        perform(self, self->state->core.node_probed(sup::now(self), p.report));
      },
      [self](const key_made& k) {
        perform(self, self->state->core.key_made(sup::now(self), k.number, k.key));
      },
      [self](const devices_probed& p) {
        perform(self, self->state->core.devices_probed(sup::now(self), p.number, p.report));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const node_name& node,
             const std::shared_ptr<probe::probe_host>& host,
             const std::shared_ptr<ports::bulk_links>& bulk, master_place master) {
  return ctx.spawn<handle>(behave, ctx, node, host, bulk, std::move(master));
}

} // namespace troupe::actors::network_prober
