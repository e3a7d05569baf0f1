#include "actors/master/gateway/gateway.hpp"

#include "actors/master/addresses.hpp"
#include "actors/tree_report.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/spec.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <stdexcept>

namespace troupe::actors::gateway {

struct knocked {
  ports::peer peer;
};

} // namespace troupe::actors::gateway

TROUPE_LOCAL_MESSAGE(troupe::actors::gateway::knocked)

namespace troupe::actors::gateway {

namespace {

using tree_request = messages::msg<messages::TreeRequest>;
using tree_report = messages::msg<messages::TreeReport>;

/// One question of a shell while its parts come in.
struct survey {
  sup::promise<tree_report> promise;
  std::size_t awaited = 0;
  std::optional<sup::node_report> master_tree;
  std::map<node_name, result<tree_report>> nodes;
};

struct state {
  sup::context ctx;
  options settings;
  master_addresses master;
  messages::author author;
  std::shared_ptr<ports::listener> listener;
  std::uint64_t sessions = 0;
};

/// Sessions outlive the gateway that let them in, and no number may name two.
constexpr std::uint64_t sessions_per_incarnation = 1'000'000'000;

using private_handle = sup::widened<handle, knocked>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

/// Whoever is neither would find nobody here to talk to.
std::optional<std::string> objection(messages::Hello::Reader hello) {
  switch (hello.getRole()) {
  case messages::Hello::Role::NODE:
  case messages::Hello::Role::SHELL:
    return std::nullopt;
  case messages::Hello::Role::PEER:
    return "this is the job's master, and no node that holds copies of images";
  }
  return "the master does not know what role this peer has; it is of a newer version";
}

void let_in(self_ptr self, const ports::peer& peer) {
  auto& s = *self->state;
  if (const auto why = objection(*peer.hello.read())) {
    (void)peer.link->send(
        s.author.write<messages::Refused>({}, [&why](auto b) { b.setReason(*why); }).any());
    peer.link->close(*why);
    return;
  }
  const session_id id{++s.sessions};
  const auto child = sup::worker(fmt::format("session {}", id.value), sup::restart::temporary,
                                 sup::stop_within{2s}, sup::address<session::handle>{},
                                 [id, peer, master = s.master](sup::context& ctx) {
                                   return session::start(ctx, id, peer, master);
                                 });
  sup::request(
      self, s.master.sessions, limits::request_within, sup::start_child{child},
      [](const sup::done&) {},
      [peer](const error& e) { peer.link->close("no session could be started: " + e.what); });
}

void write_unknown(messages::TreeNode::Builder out, const node_name& node, const std::string& why) {
  out.setName("node_supervisor " + node);
  out.setKind("unknown");
  out.setPhase(why);
}

void finish(self_ptr self, survey& all) {
  all.promise.deliver(
      self->state->author.write<messages::TreeReport>({}, [&](messages::TreeReport::Builder b) {
        auto roots = b.initRoots(static_cast<unsigned>(1 + all.nodes.size()));
        if (all.master_tree)
          write_tree(*all.master_tree, roots[0]);
        unsigned i = 0;
        for (const auto& [node, report] : all.nodes) {
          auto out = roots[++i];
          if (!report) {
            write_unknown(out, node, report.error().what);
            continue;
          }
          auto answer = report->read();
          if (answer->getRoots().size() == 0)
            write_unknown(out, node, "it answered nothing");
          else
            roots.setWithCaveats(i, answer->getRoots()[0]);
          roots[i].setName("node_supervisor " + node);
        }
      }));
}

void part_came_in(self_ptr self, const std::shared_ptr<survey>& all) {
  if (--all->awaited == 0)
    finish(self, *all);
}

void ask_nodes(self_ptr self, const std::shared_ptr<survey>& all,
               const membership::present& present) {
  const auto question = self->state->author.write<messages::TreeRequest>({}, [](auto) {});
  for (const auto& [node, session] : present.nodes) {
    if (all->nodes.size() >= self->state->settings.node_trees_max)
      break;
    all->nodes.emplace(node, failure(errc::unavailable, "did not answer in time"));
    ++all->awaited;
    sup::request(
        self, session, limits::request_within, question,
        [self, all, name = node](const tree_report& r) {
          all->nodes.at(name) = r;
          part_came_in(self, all);
        },
        [self, all, name = node](const error& e) {
          all->nodes.at(name) = tl::make_unexpected(e);
          part_came_in(self, all);
        });
  }
}

sup::promise<tree_report> look_around(self_ptr self) {
  auto all = std::make_shared<survey>(survey{sup::promise_answer<tree_report>(self), 2, {}, {}});
  sup::request(
      self, self->state->master.root, limits::request_within, sup::dump{},
      [self, all](const sup::node_report& r) {
        all->master_tree = r;
        part_came_in(self, all);
      },
      [self, all](const error&) { part_came_in(self, all); });
  sup::request(
      self, self->state->master.membership, limits::request_within, membership::list_present{},
      [self, all](const membership::present& p) {
        ask_nodes(self, all, p);
        part_came_in(self, all);
      },
      [self, all](const error&) { part_came_in(self, all); });
  return all->promise;
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, options o,
                                     std::shared_ptr<ports::listener> listener,
                                     master_addresses master) {
  sup::harden(self, ctx);
  messages::author author(ctx.path(), master.commands_as);
  self->state.emplace(state{ctx, std::move(o), std::move(master), std::move(author),
                            std::move(listener), ctx.incarnation() * sessions_per_incarnation});
  return {
      [self](sup::describe) {
        return fmt::format("listening on {}", ports::to_string(self->state->listener->where()));
      },
      [self](const tree_request&) -> sup::answer<tree_report> { return look_around(self); },
      [self](const knocked& k) { let_in(self, k.peer); },
  };
}

} // namespace

handle start(sup::context& ctx, options o, const std::shared_ptr<ports::transport>& transport,
             const master_addresses& master,
             const std::function<void(const ports::endpoint&)>& on_listening) {
  // Who knocks before the actor is there, or after it has gone, finds nobody: the link is dropped
  // and the peer dials again.
  const sup::address<private_handle> door;
  auto listener = transport->listen(
      o.listen_on, [door](ports::peer p) { sup::post(door, knocked{std::move(p)}); });
  if (!listener)
    throw std::runtime_error(listener.error().what);
  const auto where = (*listener)->where();
  const auto me = ctx.spawn<private_handle>(
      behave, ctx, std::move(o), std::shared_ptr<ports::listener>(std::move(*listener)), master);
  door.bind(me);
  on_listening(where);
  return me;
}

} // namespace troupe::actors::gateway
