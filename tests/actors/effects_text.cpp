#include "messages/text.hpp"
#include "tests/actors/vocabulary.hpp"

#include <fmt/format.h>

namespace troupe::actors::testing {

using namespace messages;

namespace {

std::string world_text(World::Reader world) {
  std::string all;
  for (auto m : world.getMembers()) {
    all += fmt::format(" {}(", m.getNode().cStr());
    for (std::uint32_t i = 0; i < m.getSlots(); ++i)
      all += fmt::format("{}{}", i ? "," : "", m.getFirstRank() + i);
    all += ")";
  }
  if (world.getRestartCount() > 0)
    all += fmt::format(", restart {}", world.getRestartCount());
  return all;
}

std::string failures_text(capnp::List<WorkerFailure>::Reader failures) {
  std::string all;
  for (auto f : failures) {
    const auto who = f.getPid() == 0 && !f.getBeforeStart()
                         ? std::string(f.getNode().cStr())
                         : fmt::format("{}/{}", f.getNode().cStr(), f.getLocalRank());
    all += fmt::format("{}{}: {}", all.empty() ? " [" : ", ", who, f.getMessage().cStr());
  }
  return all.empty() ? all : all + "]";
}

const char* phase_text(NodeState::Phase p) {
  switch (p) {
  case NodeState::Phase::IDLE:
    return "idle";
  case NodeState::Phase::DRAINING:
    return "draining";
  case NodeState::Phase::PREPARED:
    return "ready";
  case NodeState::Phase::RUNNING:
    return "running";
  case NodeState::Phase::FAILED:
    return "failed";
  case NodeState::Phase::FINISHED:
    return "finished";
  }
  return "?";
}

std::string port_text(std::uint16_t port, bool hosted) {
  return port ? fmt::format(" port {}{}", port, hosted ? "" : " for its worker") : "";
}

std::string state_text(NodeState::Reader s) {
  return fmt::format("{} g{}{}{}", phase_text(s.getPhase()), s.getGeneration(),
                     port_text(s.getStorePort(), s.getStoreHosted()),
                     failures_text(s.getFailures()));
}

std::string joined(const std::vector<node_name>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

const char* result_text(bool success) {
  return success ? "success" : "failure";
}

std::string image_text(const ckpt::image_here& image) {
  return fmt::format("g{} step {} rank {}", image.made_by.value, image.step, image.rank);
}

// ---- one effect each; empty for notes ----

struct in_text {
  // membership
  std::string operator()(const membership_core::welcome& e) const {
    return fmt::format("welcome {}", e.session.value);
  }
  std::string operator()(const membership_core::refuse& e) const {
    auto m = e.message.read();
    return fmt::format("refuse {}{}: {}", e.session.value, m->getRetry() ? " for now" : "",
                       m->getReason().cStr());
  }
  std::string operator()(const membership_core::fence& e) const {
    return fmt::format("fence {}: {}", e.session.value, e.reason);
  }
  std::string operator()(const membership_core::announce& e) const {
    return "announce " + text(e.message);
  }
  std::string operator()(const membership_core::everyone_left&) const { return "everyone left"; }
  std::string operator()(const membership_core::note&) const { return {}; }

  // rendezvous
  std::string operator()(const rendezvous_core::record& e) const {
    return "record " + text(e.message);
  }
  std::string operator()(const rendezvous_core::direct& e) const {
    return fmt::format("to {}: {}", joined(e.nodes), text(e.message));
  }
  std::string operator()(const rendezvous_core::inform_recovery& e) const {
    return "inform recovery: " + text(e.message);
  }
  std::string operator()(const rendezvous_core::expel& e) const {
    return fmt::format("expel {}{}: {}", e.node, e.may_rejoin ? " for now" : "", e.reason);
  }
  std::string operator()(const rendezvous_core::announce_end&) const { return "announce the end"; }
  std::string operator()(const rendezvous_core::note&) const { return {}; }

  // recovery
  std::string operator()(const recovery_core::record& e) const {
    return "record " + text(e.message);
  }
  std::string operator()(const recovery_core::instruct& e) const {
    return "instruct " + text(e.message);
  }
  std::string operator()(const recovery_core::verdict& e) const {
    return fmt::format("verdict {}: {}", result_text(e.success), e.reason);
  }
  std::string operator()(const recovery_core::note&) const { return {}; }

  // uplink
  std::string operator()(const uplink_core::ask_state&) const { return "ask_state"; }
  std::string operator()(const uplink_core::dial& e) const { return "dial " + text(e.hello.any()); }
  std::string operator()(const uplink_core::close_link& e) const {
    return "close_link: " + e.reason;
  }
  std::string operator()(const uplink_core::say& e) const { return "say " + text(e.message); }
  std::string operator()(const uplink_core::deliver& e) const {
    return "deliver " + text(e.message);
  }
  // Follows every welcome; a test of its own asks for it.
  std::string operator()(const uplink_core::linked&) const { return {}; }
  std::string operator()(const uplink_core::start_over& e) const {
    return "start_over " + text(e.message.any());
  }
  std::string operator()(const uplink_core::give_up& e) const { return "give_up: " + e.reason; }
  std::string operator()(const uplink_core::note&) const { return {}; }

  // leader
  std::string operator()(const leader_core::start_worker& e) const {
    const auto& p = e.place;
    return fmt::format("start {}: g{} rank {} of {}, node {} of {}, store {}:{}{}", p.local,
                       p.which.value, p.rank, p.world_size, p.group_rank, p.group_world_size,
                       p.store_address, p.store_port,
                       p.restart_count ? fmt::format(", restart {}", p.restart_count) : "");
  }
  std::string operator()(const leader_core::adopt_worker& e) const {
    return fmt::format("adopt {} (pid {})", e.place.local, e.process.pid);
  }
  std::string operator()(const leader_core::end_worker& e) const {
    return fmt::format("end {}: signal {} within {}", e.local, e.signal,
                       troupe::in_words(e.within));
  }
  std::string operator()(const leader_core::signal_worker& e) const {
    return fmt::format("pass on {}: signal {}", e.local, e.signal);
  }
  std::string operator()(const leader_core::sweep&) const { return "sweep"; }
  std::string operator()(const leader_core::open_store& e) const {
    return e.reach == ports::store_reach::network ? "open_store" : "open_store for this machine";
  }
  std::string operator()(const leader_core::adopt_store& e) const {
    return fmt::format("adopt_store at {}", e.port);
  }
  // Tests that care ask underway().
  std::string operator()(const leader_core::remember&) const { return {}; }
  std::string operator()(const leader_core::close_store&) const { return "close_store"; }
  std::string operator()(const leader_core::pick_port&) const { return "pick_port"; }
  std::string operator()(const leader_core::drain& e) const {
    return e.after > duration::zero()
               ? fmt::format("drain g{} after {}", e.which.value, troupe::in_words(e.after))
               : fmt::format("drain g{}", e.which.value);
  }
  std::string operator()(const leader_core::save_newest&) const { return "save_newest"; }
  std::string operator()(const leader_core::report& e) const { return "report " + text(e.message); }
  std::string operator()(const leader_core::node_over& e) const {
    return fmt::format("node_over {}{}: {}", result_text(e.outcome.success),
                       e.outcome.verdict ? " by verdict" : "", e.outcome.reason);
  }
  std::string operator()(const leader_core::note&) const { return {}; }

  // catalog
  std::string operator()(const catalog_core::say& e) const {
    return fmt::format("to {}: {}", joined(e.to), text(e.message));
  }
  std::string operator()(const catalog_core::note&) const { return {}; }

  // checkpoint_saver
  std::string operator()(const checkpoint_saver_core::write& e) const {
    return fmt::format("write {}", image_text(e.image));
  }
  std::string operator()(const checkpoint_saver_core::commit& e) const {
    const auto& says = e.order.says;
    return fmt::format("commit step {} in {}/{}: {} of {} ranks, {} files{}", says.step,
                       e.order.to.place, e.order.to.directory, says.layout, says.world_size,
                       says.shards.size(),
                       e.order.follows ? fmt::format(", as {}", says.sequence) : "");
  }
  std::string operator()(const checkpoint_saver_core::settle& e) const {
    return fmt::format("settle {}: {}", image_text(e.image),
                       e.how ? "complete" : e.how.error().what);
  }
  std::string operator()(const checkpoint_saver_core::copy& e) const {
    return fmt::format("copy {} to {} others", image_text(e.image), e.image.by.members.size() - 1);
  }
  std::string operator()(const checkpoint_saver_core::settle_copy& e) const {
    return fmt::format("settle {}: {}", image_text(e.image),
                       e.how ? "held by others" : e.how.error().what);
  }
  std::string operator()(const checkpoint_saver_core::look& e) const {
    return fmt::format("look {}", e.question);
  }
  std::string operator()(const checkpoint_saver_core::drained& e) const {
    return fmt::format("drained {}", e.question);
  }
  std::string operator()(const checkpoint_saver_core::report& e) const {
    return "report " + text(e.message);
  }
  std::string operator()(const checkpoint_saver_core::note&) const { return {}; }

  // worker_process
  std::string operator()(const worker_process_core::signal& e) const {
    return fmt::format("signal {}", e.number);
  }
  std::string operator()(const worker_process_core::ended& e) const {
    return "ended with " + ports::to_string(e.status);
  }
  std::string operator()(const worker_process_core::note&) const { return {}; }
};

template<class Effects>
std::string all_in_text(const Effects& effects) {
  std::vector<std::string> all;
  for (const auto& e : effects)
    if (auto line = std::visit(in_text{}, e); !line.empty())
      all.push_back(std::move(line));
  return fmt::format("{}", fmt::join(all, "\n"));
}

} // namespace

namespace {

/// A maker of text for one kind of message; `g` is the generation in its envelope.
template<class T, class Maker>
bool told(std::string& out, const any_msg& m, Maker make) {
  if (!m.is<T>())
    return false;
  out = make(*m.as<T>().read(), m.envelope().about.value);
  return true;
}

bool told_of_nodes(std::string& out, const any_msg& m) {
  return told<NodePresent>(out, m,
                           [](auto& b, auto) {
                             return fmt::format("NodePresent {} {}", b.getNode().cStr(),
                                                state_text(b.getState()));
                           }) ||
         told<NodeAway>(out, m,
                        [](auto& b, auto) {
                          return fmt::format("NodeAway {}: {}", b.getNode().cStr(),
                                             b.getReason().cStr());
                        }) ||
         told<NodeLost>(out, m,
                        [](auto& b, auto) {
                          return fmt::format("NodeLost {}: {}", b.getNode().cStr(),
                                             b.getReason().cStr());
                        }) ||
         told<Hello>(out, m,
                     [](auto& b, auto) {
                       return fmt::format("Hello {} {}", b.getNode().cStr(),
                                          state_text(b.getState()));
                     }) ||
         told<Goodbye>(
             out, m,
             [](auto& b, auto) { return fmt::format("Goodbye: {}", b.getReason().cStr()); }) ||
         told<NodeState>(out, m, [](auto& b, auto) { return "NodeState " + state_text(b); });
}

bool told_of_generations(std::string& out, const any_msg& m) {
  return told<Prepare>(out, m,
                       [](auto& b, auto g) {
                         return fmt::format("Prepare g{}:{}", g, world_text(b.getWorld()));
                       }) ||
         told<Prepared>(out, m,
                        [](auto& b, auto g) {
                          return fmt::format("Prepared g{} {}{}", g, b.getNode().cStr(),
                                             port_text(b.getStorePort(), b.getStoreHosted()));
                        }) ||
         told<Start>(out, m,
                     [](auto& b, auto g) {
                       return fmt::format("Start g{}, store {}:{}{}", g, b.getStoreAddress().cStr(),
                                          b.getStorePort(),
                                          b.getStoreHosted() ? "" : " of its worker");
                     }) ||
         told<Stop>(out, m,
                    [](auto& b, auto g) {
                      return fmt::format("Stop g{}: {}", g, b.getReason().cStr());
                    }) ||
         told<StandBy>(
             out, m,
             [](auto& b, auto) { return fmt::format("StandBy: {}", b.getReason().cStr()); }) ||
         told<NodesWaiting>(out, m,
                            [](auto& b, auto g) {
                              return fmt::format("NodesWaiting g{}: {}", g, b.getReason().cStr());
                            }) ||
         told<Indispensable>(out, m,
                             [](auto& b, auto g) {
                               return fmt::format("Indispensable g{}: {}", g, b.getNode().cStr());
                             }) ||
         told<Sealed>(out, m,
                      [](auto& b, auto g) {
                        return fmt::format("Sealed g{}:{}", g, world_text(b.getWorld()));
                      }) ||
         told<Reform>(out, m,
                      [](auto& b, auto g) {
                        const std::string without = b.getWithout().cStr();
                        return fmt::format("Reform g{}{}, restart {}: {}", g,
                                           without.empty() ? "" : " without " + without,
                                           b.getRestartCount(), b.getReason().cStr());
                      }) ||
         told<Unformable>(out, m, [](auto& b, auto) {
           return fmt::format("Unformable: {}", b.getReason().cStr());
         });
}

bool told_of_training(std::string& out, const any_msg& m) {
  return told<Running>(out, m,
                       [](auto& b, auto g) {
                         return fmt::format("Running g{} {}", g, b.getNode().cStr());
                       }) ||
         told<Failed>(out, m,
                      [](auto& b, auto g) {
                        return fmt::format("Failed g{} {}{}{}", g, b.getNode().cStr(),
                                           failures_text(b.getFailures()),
                                           b.getEnded() ? " ended" : "");
                      }) ||
         told<Finished>(out, m,
                        [](auto& b, auto g) {
                          return fmt::format("Finished g{} {}", g, b.getNode().cStr());
                        }) ||
         told<Conclude>(out, m, [](auto& b, auto) {
           return fmt::format("Conclude {}: {}{}", result_text(b.getSuccess()),
                              b.getReason().cStr(), failures_text(b.getFailures()));
         });
}

bool told_of_records(std::string& out, const any_msg& m) {
  return told<GenerationProposed>(
             out, m,
             [](auto& b, auto) {
               return fmt::format(
                   "GenerationProposed g{}{}", b.getGeneration(),
                   b.getRelaunches() ? fmt::format(", {} relaunched", b.getRelaunches()) : "");
             }) ||
         told<GenerationSealed>(out, m,
                                [](auto& b, auto g) {
                                  return fmt::format("GenerationSealed g{}:{}, store {}:{}", g,
                                                     world_text(b.getWorld()),
                                                     b.getStoreAddress().cStr(), b.getStorePort());
                                }) ||
         told<RestartCharged>(out, m,
                              [](auto& b, auto g) {
                                return fmt::format("RestartCharged g{} to {}, restart {}{}", g,
                                                   b.getNode().cStr(), b.getRestartCount(),
                                                   failures_text(b.getFailures()));
                              }) ||
         told<Concluded>(out, m, [](auto& b, auto) {
           return fmt::format("Concluded {}: {}", result_text(b.getSuccess()),
                              b.getReason().cStr());
         });
}

std::string files_text(capnp::List<ShardFile>::Reader files) {
  std::string all;
  for (auto f : files)
    all += fmt::format("{}{}/{}", all.empty() ? "" : " ", f.getNode().cStr(), f.getName().cStr());
  return all;
}

std::string number_text(std::uint64_t sequence, const char* why) {
  return sequence != 0 ? fmt::format("as {}", sequence) : fmt::format("not: {}", why);
}

bool told_of_checkpoints(std::string& out, const any_msg& m) {
  return told<ShardReport>(out, m,
                           [](auto& b, auto g) {
                             return fmt::format(
                                 "ShardReport g{} {} step {} shard {} of {}: {}", g,
                                 b.getNode().cStr(), b.getKey().getStep(), b.getShard(),
                                 b.getShards(),
                                 b.isFailed() ? fmt::format("failed: {}", b.getFailed().cStr())
                                              : std::string(b.getWritten().getName().cStr()));
                           }) ||
         told<CommitStep>(out, m,
                          [](auto& b, auto g) {
                            return fmt::format(
                                "CommitStep g{} step {}{}: {}", g, b.getKey().getStep(),
                                b.getSequence() ? fmt::format(" as {}", b.getSequence()) : "",
                                files_text(b.getFiles()));
                          }) ||
         told<StepCommitted>(out, m,
                             [](auto& b, auto g) {
                               return fmt::format("StepCommitted g{} {} step {} {}", g,
                                                  b.getNode().cStr(), b.getKey().getStep(),
                                                  number_text(b.getSequence(), b.getWhy().cStr()));
                             }) ||
         told<StepSettled>(out, m, [](auto& b, auto g) {
           return fmt::format("StepSettled g{} step {} {}", g, b.getKey().getStep(),
                              b.getComplete() ? "complete"
                                              : fmt::format("not: {}", b.getWhy().cStr()));
         });
}

} // namespace

std::string text(const any_msg& m) {
  std::string out;
  if (!told_of_nodes(out, m) && !told_of_generations(out, m) && !told_of_training(out, m) &&
      !told_of_checkpoints(out, m) && !told_of_records(out, m))
    out = to_text(m);
  return out;
}

std::string text(const membership_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const rendezvous_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const recovery_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const uplink_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const leader_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const worker_process_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const catalog_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const checkpoint_saver_core::effects& effects) {
  return all_in_text(effects);
}

} // namespace troupe::actors::testing
