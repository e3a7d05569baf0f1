#include "actors/master/gateway/gateway.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/gateway/one_tree.hpp"
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
  /// The one node that is asked for; empty: all.
  node_name only;
  std::size_t awaited = 0;
  sup::node_report master;
  std::map<node_name, node_part> nodes;
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

/// Why a peer that is neither a node nor a shell is refused: no actor here talks to it.
std::optional<std::string> validation_error(messages::Hello::Reader hello) {
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
  if (const auto why = validation_error(*peer.hello.read())) {
    (void)peer.link->send(
        s.author.write<messages::Refused>({}, [&why](auto b) { b.setReason(*why); }).any());
    peer.link->close(*why);
    return;
  }
  const session_id id{++s.sessions};
  const auto child =
      sup::worker(session_name(id), sup::restart::temporary, sup::stop_within{2s},
                  sup::address<session::handle>{},
                  [id, peer, job = s.settings.job, master = s.master](sup::context& ctx) {
                    return session::start(ctx, id, peer, job, master);
                  });
  sup::request(
      self, s.master.sessions, limits::request_within, sup::start_child{child},
      [](const sup::done&) {},
      [peer](const error& e) { peer.link->close("no session could be started: " + e.what); });
}

void finish(self_ptr self, survey& all) {
  std::vector<node_part> parts;
  for (auto& [node, part] : all.nodes)
    parts.push_back(std::move(part));
  const auto tree = one_tree(std::move(all.master), std::move(parts));
  all.promise.deliver(self->state->author.write<messages::TreeReport>(
      {}, [&tree](messages::TreeReport::Builder b) { write_tree(tree, b.initRoots(1)[0]); }));
}

void part_came_in(self_ptr self, const std::shared_ptr<survey>& all) {
  if (--all->awaited == 0)
    finish(self, *all);
}

void take_answer(node_part& part, const tree_report& answer) {
  auto report = answer.read();
  if (report->getRoots().size() > 0)
    part.tree = read_tree(report->getRoots()[0], limits::tree_node_levels_max);
  if (!part.tree)
    part.why = fmt::format("its answer is empty, or has more than {} levels",
                           limits::tree_node_levels_max);
}

void ask_node(self_ptr self, const std::shared_ptr<survey>& all,
              const membership::present::linked& one, const tree_request& question) {
  ++all->awaited;
  sup::request(
      self, one.where, limits::tree_node_within, question,
      [self, all, node = one.node](const tree_report& r) {
        take_answer(all->nodes.at(node), r);
        part_came_in(self, all);
      },
      [self, all, node = one.node](const error& e) {
        all->nodes.at(node).why =
            e.code == errc::unavailable
                ? "did not answer within " + in_words(limits::tree_node_within)
                : e.what;
        part_came_in(self, all);
      });
}

/// Every node that takes part in the answer gets its row; those that are asked fill it in.
void ask_nodes(self_ptr self, const std::shared_ptr<survey>& all,
               const membership::present& present) {
  const auto most = self->state->settings.node_trees_max;
  const auto question = self->state->author.write<messages::TreeRequest>({}, [](auto) {});
  const auto beyond =
      fmt::format("not asked: one answer shows {} nodes (--node shows this node alone)", most);
  std::size_t asked = 0;
  for (const auto& one : present.nodes) {
    const bool wanted = all->only.empty() || all->only == one.node;
    auto& part = all->nodes[one.node] = {one.node, one.id, std::nullopt, {}};
    if (wanted && asked++ < most)
      ask_node(self, all, one, question);
    else if (wanted)
      part.why = beyond;
  }
  for (const auto& [node, why] : present.away)
    all->nodes[node] = {node, std::nullopt, std::nullopt, why};
}

void ask_master(self_ptr self, const std::shared_ptr<survey>& all) {
  ++all->awaited;
  sup::request(
      self, self->state->master.root, limits::request_within, sup::dump{},
      [self, all](const sup::node_report& r) {
        all->master = r;
        part_came_in(self, all);
      },
      [self, all](const error& e) {
        all->master = sup::node_report{"master", "unknown", "silent", e.what};
        part_came_in(self, all);
      });
}

/// The master's tree is asked last, since it shows how many messages wait for each actor: what this
/// survey asks the others is not to be among them.
sup::promise<tree_report> look_around(self_ptr self, const tree_request& asked) {
  auto all = std::make_shared<survey>();
  all->promise = sup::promise_answer<tree_report>(self);
  all->only = asked.read()->getNode().cStr();
  all->awaited = 1;
  sup::request(
      self, self->state->master.membership, limits::tree_node_within,
      messages::local<messages::ListNodes>(self->state->ctx.path()),
      [self, all](const membership::present& p) {
        ask_nodes(self, all, p);
        ask_master(self, all);
        part_came_in(self, all);
      },
      // The master's own tree shows membership's silence.
      [self, all](const error&) {
        ask_master(self, all);
        part_came_in(self, all);
      });
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
        const auto where = ports::to_string(self->state->listener->where());
        return sup::described(self, "listening on " + where);
      },
      [self](const tree_request& question) -> sup::answer<tree_report> {
        return look_around(self, question);
      },
      [self](const knocked& k) { let_in(self, k.peer); },
  };
}

} // namespace

handle start(sup::context& ctx, options o, const std::shared_ptr<ports::transport>& transport,
             const master_addresses& master,
             const std::function<void(const ports::endpoint&)>& on_listening) {
  // If a peer knocks before the actor is there, or after it has gone, the link is dropped and the
  // peer dials again.
  const sup::address<private_handle> own;
  auto listener = transport->listen(
      o.listen_on, [own](ports::peer p) { sup::post(own, knocked{std::move(p)}); });
  if (!listener)
    throw std::runtime_error(listener.error().what);
  const auto where = (*listener)->where();
  const auto me = ctx.spawn<private_handle>(
      behave, ctx, std::move(o), std::shared_ptr<ports::listener>(std::move(*listener)), master);
  own.bind(me);
  on_listening(where);
  return me;
}

} // namespace troupe::actors::gateway
