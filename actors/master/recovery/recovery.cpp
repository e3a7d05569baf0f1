#include "actors/master/recovery/recovery.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/job/generation/generation.hpp"
#include "actors/master/journalled.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/gate.hpp"
#include "runtime/sup/shell.hpp"

#include <map>
#include <optional>

namespace troupe::actors::recovery {

/// To itself: the supervisor of generations has failed.
struct job_fell {};
/// To itself, from the thread that reads the file.
struct topology_known {
  topology_answer answer;
};
/// To itself, from the cluster's thread.
struct sizes_wanted {
  ports::cluster::sizes wanted;
};
struct supplied {
  ports::cluster::supply is;
};

} // namespace troupe::actors::recovery

TROUPE_LOCAL_MESSAGE(troupe::actors::recovery::job_fell)
TROUPE_LOCAL_MESSAGE(troupe::actors::recovery::topology_known)
TROUPE_LOCAL_MESSAGE(troupe::actors::recovery::sizes_wanted)
TROUPE_LOCAL_MESSAGE(troupe::actors::recovery::supplied)

namespace troupe::actors::recovery {

namespace {

using scale_report = messages::msg<messages::ScaleReport>;

struct state;
using private_handle =
    sup::widened<handle, sup::wake, job_fell, topology_known, sizes_wanted, supplied>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct state {
  sup::context ctx;
  rendezvous_options sizes;
  duration check_within;
  recovery_core core;
  master_addresses master;
  std::shared_ptr<ports::cluster> cluster;
  std::function<void(const recovery_core::verdict&)> on_verdict;
  journal::journalled<recovery_core, self_ptr> effects;
  std::map<std::uint64_t, std::function<void(const scale_report&)>> asked; ///< by their number
  std::uint32_t wanted = 0; ///< nodes, as the cluster was told
  std::uint64_t last_asked = 0;
  /// Closed until the journal has been read back.
  sup::gate recalled;
  sup::alarm alarm;
};

void perform(self_ptr self, const recovery_core::effects& effects) {
  auto& s = *self->state;
  s.alarm.arm(self, s.core.next_wakeup());
  s.effects.run(effects);
}

void generation_ended(self_ptr self, generation which, const std::optional<std::string>& why) {
  perform(self, self->state->core.generation_ended(sup::now(self), which, why));
}

/// Its end comes through `job`. Should that itself fall, the planner falls with it, and both begin
/// anew from the journal: the generation that runs is found there.
void start_generation(self_ptr self, const recovery_core::start_generation& e) {
  auto& s = *self->state;
  const auto which = e.world.envelope().about;
  const auto job = s.master.job.current();
  sup::request(
      self, job, limits::request_within,
      sup::start_child{job::generation_tree(e, s.sizes, s.master), e.against},
      [](const sup::done&) {},
      [self, which](const error& why) {
        generation_ended(self, which, "it could not be started: " + why.what);
      });
  if (job)
    sup::when_failed(job, [me = private_handle{self}] { sup::post(me, job_fell{}); });
}

/// A planner that asks again has no use for the older answer.
void check_nodes(self_ptr self, const recovery_core::check_nodes& e) {
  auto& s = *self->state;
  sup::request(
      self, s.master.network_check, s.check_within, e.message,
      [self, number = e.number](const messages::msg<messages::NodesChecked>& m) {
        perform(self, self->state->core.nodes_checked(sup::now(self), number, m));
      },
      [self, number = e.number](const error& why) {
        perform(self, self->state->core.check_failed(sup::now(self), number, why.what));
      });
}

/// Answered once it is down, which its end says as well.
void stop_generation(self_ptr self, const recovery_core::stop_generation& e) {
  auto& s = *self->state;
  sup::stop_child order{in_full(e.which),
                        {sup::stop_order::cause::asked, e.reason,
                         e.verdict_follows ? verdict_follows : 0, std::nullopt}};
  sup::request(
      self, s.master.job, limits::request_within, order, [](const sup::done&) {},
      [](const error&) {});
}

struct performer {
  self_ptr self;

  void operator()(const recovery_core::record&) const {
    invariant(false, "records go to the journal");
  }
  void operator()(const recovery_core::direct& e) const {
    sup::send(self, self->state->master.membership, membership::dispatch{e.nodes, e.message});
  }
  void operator()(const recovery_core::start_generation& e) const { start_generation(self, e); }
  void operator()(const recovery_core::stop_generation& e) const { stop_generation(self, e); }
  void operator()(const recovery_core::recall_restarts& e) const {
    sup::send(self, self->state->master.job, sup::recall_restarts{{e.used.begin(), e.used.end()}});
  }
  void operator()(const recovery_core::evict& e) const {
    sup::send(
        self, self->state->master.membership,
        membership::evict(self->state->ctx.path(), e.node, e.reason, e.may_rejoin, e.in_short));
  }
  void operator()(const recovery_core::lose& e) const {
    self->state->cluster->node_lost(e.node, e.address, e.reason);
  }
  void operator()(const recovery_core::replace& e) const {
    self->state->cluster->replace(e.node, e.address, e.is_broken, e.reason);
  }
  void operator()(const recovery_core::mark& e) const {
    self->state->cluster->mark_faulty(e.node, e.address, e.reason);
  }
  void operator()(const recovery_core::check_nodes& e) const { check_nodes(self, e); }
  void operator()(const recovery_core::announce_end&) const {
    sup::send(self, self->state->master.membership,
              messages::local<messages::JobOver>(self->state->ctx.path()));
  }
  void operator()(const recovery_core::verdict& e) const { self->state->on_verdict(e); }
  void operator()(const recovery_core::reply& e) const {
    auto& asked = self->state->asked;
    const auto open = asked.find(e.number);
    invariant(open != asked.end(), "each question is answered once");
    const auto answer = std::move(open->second);
    asked.erase(open);
    answer(e.report);
  }
  void operator()(const recovery_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

template<class T>
auto on(self_ptr self,
        recovery_core::effects (recovery_core::*event)(instant, const messages::msg<T>&)) {
  return [self, event](const messages::msg<T>& m) {
    self->state->recalled.pass(
        [self, event, m] { perform(self, (self->state->core.*event)(sup::now(self), m)); });
  };
}

/// To the cluster, whenever it is another number.
void tell_wanted(self_ptr self) {
  const auto nodes = self->state->core.nodes_max();
  if (std::exchange(self->state->wanted, nodes) != nodes)
    self->state->cluster->want(nodes);
}

/// `answer` hears of it once it is on record, or why it is not done.
void scale(self_ptr self, const messages::msg<messages::ScaleRequest>& wish,
           std::function<void(const scale_report&)> answer) {
  const auto number = ++self->state->last_asked;
  self->state->asked.emplace(number, std::move(answer));
  self->state->recalled.pass([self, number, wish] {
    perform(self, self->state->core.scale_wanted(sup::now(self), number, wish));
    tell_wanted(self);
  });
}

void scale_as_wanted(self_ptr self, const ports::cluster::sizes& wanted) {
  const auto wish =
      messages::local<messages::ScaleRequest>(self->state->ctx.path(), [&wanted](auto b) {
        b.setNodesMin(wanted.nodes_min);
        b.setNodesMax(wanted.nodes_max);
        b.setPlan(wanted.plan);
      });
  scale(self, wish, [done = wanted.done](const scale_report& report) {
    done(report.read()->getAccepted(), report.read()->getText().cStr());
  });
}

void recall(self_ptr self) {
  sup::request(
      self, self->state->master.journal, limits::journal_within,
      messages::local<messages::ReadBack>(self->state->ctx.path()),
      [self](const journal::history& h) {
        perform(self, self->state->core.recall(sup::now(self), h.records));
        tell_wanted(self);
        self->state->recalled.open();
      },
      [self](const error& e) {
        sup::stop(self, error{e.code, "the journal could not be read back: " + e.what});
      });
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, rendezvous_options sizes,
                                     recovery_options options, master_addresses master,
                                     std::function<void(const recovery_core::verdict&)> on_verdict,
                                     const std::shared_ptr<topology_source>& topology,
                                     std::shared_ptr<ports::cluster> cluster) {
  sup::harden(self, ctx);
  options.cluster_replaces = cluster->replaces();
  self->state.emplace(
      state{ctx,
            sizes,
            options.check_within,
            recovery_core(sizes, options, messages::author(ctx.path(), master.commands_as),
                          sup::now(self)),
            master,
            std::move(cluster),
            std::move(on_verdict),
            {self, master.journal,
             [self](const recovery_core::effect& e) { std::visit(performer{self}, e); }},
            {},
            0,
            {},
            {}});
  recall(self);
  self->state->cluster->listen({[me = private_handle{self}](const ports::cluster::sizes& wanted) {
                                  sup::post(me, sizes_wanted{wanted});
                                },
                                [me = private_handle{self}](const ports::cluster::supply& is) {
                                  sup::post(me, supplied{is});
                                }});
  if (topology && sizes.topology.file)
    topology->read([me = private_handle{self}](const topology_answer& answer) {
      sup::post(me, topology_known{answer});
    });
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      on(self, &recovery_core::sealed),
      on(self, &recovery_core::node_present),
      on(self, &recovery_core::node_away),
      on(self, &recovery_core::node_lost),
      on(self, &recovery_core::running),
      on(self, &recovery_core::failed),
      on(self, &recovery_core::finished),
      on(self, &recovery_core::stopped),
      on(self, &recovery_core::end_answer),
      [self](const messages::msg<messages::SealedRequest>&) {
        self->state->recalled.pass([self] {
          if (const auto sealed = self->state->core.running_world())
            sup::send(self, self->state->master.diagnosis, *sealed);
        });
      },
      [self](const messages::msg<messages::ScaleRequest>& m) -> sup::answer<scale_report> {
        auto promise = sup::promise_answer<scale_report>(self);
        if (self->state->asked.size() >= limits::scale_requests_max) {
          promise.deliver(sup::fail(errc::overloaded, "too many wishes wait for the journal"));
          return promise;
        }
        scale(self, m, [promise](const scale_report& report) mutable { promise.deliver(report); });
        return promise;
      },
      [self](const sup::child_end& e) {
        self->state->recalled.pass([self, e] {
          const auto which = self->state->core.current();
          if (e.id == in_full(which))
            generation_ended(self, which, e.why ? std::optional(e.why->what) : std::nullopt);
        });
      },
      [self](const messages::msg<messages::Abandon>& m) {
        self->state->recalled.pass([self, m] {
          perform(self, self->state->core.abandon(sup::now(self), m.read()->getReason().cStr()));
        });
      },
      [self](const topology_known& known) {
        self->state->recalled.pass([self, known] {
          perform(self, self->state->core.topology_known(sup::now(self), known.answer));
        });
      },
      [self](const sizes_wanted& s) { scale_as_wanted(self, s.wanted); },
      [self](const supplied& s) {
        self->state->recalled.pass(
            [self, s] { perform(self, self->state->core.supplied(sup::now(self), s.is)); });
      },
      [self](job_fell) {
        sup::stop(self, error{errc::closed, "the supervisor of generations has failed"});
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, rendezvous_options sizes, recovery_options options,
             const master_addresses& master,
             std::function<void(const recovery_core::verdict&)> on_verdict,
             std::shared_ptr<topology_source> topology, std::shared_ptr<ports::cluster> cluster) {
  return ctx.spawn<handle>(behave, ctx, std::move(sizes), std::move(options), master,
                           std::move(on_verdict), std::move(topology), std::move(cluster));
}

} // namespace troupe::actors::recovery
