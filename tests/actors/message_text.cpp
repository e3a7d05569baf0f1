// Messages in a few words, for tests: `Sealed g2: a(0,1) b(2,3), restart 1`.

#include "messages/text.hpp"
#include "tests/actors/vocabulary.hpp"

#include <fmt/format.h>

namespace troupe::actors::testing {

using namespace messages;

namespace {

/// "a(0,1)"
std::string member_text(Member::Reader m) {
  std::string ranks;
  for (std::uint32_t i = 0; i < m.getSlots(); ++i)
    ranks += fmt::format("{}{}", i ? "," : "", m.getFirstRank() + i);
  return fmt::format("{}({})", m.getNode().cStr(), ranks);
}

std::string restarts_text(std::uint32_t count) {
  return count > 0 ? fmt::format(", restart {}", count) : "";
}

std::string world_text(World::Reader world) {
  std::string all;
  for (auto m : world.getMembers())
    all += " " + member_text(m);
  return all + restarts_text(world.getRestartCount());
}

/// "a(0,1) of 4 on 2 nodes, restart 1"
std::string seat_text(Seat::Reader seat) {
  return fmt::format("{} of {} on {} node{}{}", member_text(seat.getMember()), seat.getWorldSize(),
                     seat.getNodes(), seat.getNodes() == 1 ? "" : "s",
                     restarts_text(seat.getRestartCount()));
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

const char* outcome_text(bool success) {
  return success ? "success" : "failure";
}

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
                         return fmt::format("Prepare g{}: {}", g, seat_text(b.getSeat()));
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
         told<EndWanted>(out, m,
                         [](auto& b, auto g) {
                           return fmt::format("EndWanted g{}: {}", g, b.getReason().cStr());
                         }) ||
         told<Leave>(out, m,
                     [](auto& b, auto g) {
                       return fmt::format("Leave g{}, node {}: {}", g, b.getNode().cStr(),
                                          b.getReason().cStr());
                     }) ||
         told<StandBy>(
             out, m,
             [](auto& b, auto) { return fmt::format("StandBy: {}", b.getReason().cStr()); }) ||
         told<Dispensable>(out, m,
                           [](auto& b, auto g) {
                             return fmt::format("Dispensable g{}: {}", g,
                                                b.getOthersSuffice() ? "yes" : "no");
                           }) ||
         told<WorldProposed>(out, m,
                             [](auto& b, auto g) {
                               return fmt::format("WorldProposed g{}:{}", g,
                                                  world_text(b.getWorld()));
                             }) ||
         told<RankOwners>(out, m,
                          [](auto& b, auto g) {
                            return fmt::format("RankOwners g{} of {} node{}", g,
                                               b.getNodes().size(),
                                               b.getNodes().size() == 1 ? "" : "s");
                          }) ||
         told<Sealed>(out, m, [](auto& b, auto g) {
           return fmt::format("Sealed g{}:{}", g, world_text(b.getWorld()));
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
         told<Stopped>(out, m,
                       [](auto& b, auto g) {
                         return fmt::format("Stopped g{} {}{}", g, b.getNode().cStr(),
                                            failures_text(b.getFailures()));
                       }) ||
         told<Finished>(out, m,
                        [](auto& b, auto g) {
                          return fmt::format("Finished g{} {}{}", g, b.getNode().cStr(),
                                             b.getAsked() ? ", asked to" : "");
                        }) ||
         told<EndAnswer>(out, m,
                         [](auto& b, auto g) {
                           return fmt::format("EndAnswer g{} {}: {}", g, b.getNode().cStr(),
                                              b.getBegun() ? "begun" : "not possible");
                         }) ||
         told<WorkerStarted>(out, m,
                             [](auto& b, auto g) {
                               return fmt::format("WorkerStarted g{} {} pid {}", g,
                                                  b.getLocalRank(), b.getPid());
                             }) ||
         told<WorkerEnded>(
             out, m,
             [](auto& b, auto g) {
               auto r = b.getReport();
               return fmt::format(
                   "WorkerEnded g{} {} code {}{}{}{}", g, r.getLocalRank(), r.getExitCode(),
                   r.getBeforeStart() ? " before the start" : "",
                   b.getSignalled() ? fmt::format(" {} us after our signal", b.getSignalledUs())
                                    : "",
                   r.getMessage().size() == 0 ? "" : fmt::format(": {}", r.getMessage().cStr()));
             }) ||
         told<Conclude>(out, m, [](auto& b, auto) {
           return fmt::format("Conclude {}: {}{}", outcome_text(b.getSuccess()),
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
         told<RestartCounted>(out, m,
                              [](auto& b, auto g) {
                                return fmt::format("RestartCounted g{} to {}, restart {}{}", g,
                                                   b.getNode().cStr(), b.getRestartCount(),
                                                   failures_text(b.getFailures()));
                              }) ||
         told<SizesChanged>(out, m,
                            [](auto& b, auto) {
                              std::string plans;
                              for (const auto plan : b.getPlansTaken())
                                plans += fmt::format(", plan {}", plan.cStr());
                              return fmt::format("SizesChanged {}:{}{}", b.getNodesMin(),
                                                 b.getNodesMax(), plans);
                            }) ||
         told<JobOptionsTaken>(out, m,
                               [](auto& b, auto) {
                                 return fmt::format(
                                     "JobOptionsTaken {}: {}", b.getNode().cStr(),
                                     messages::in_words(read_job_words(b.getOptions())));
                               }) ||
         told<Concluded>(out, m, [](auto& b, auto) {
           return fmt::format("Concluded {}: {}", outcome_text(b.getSuccess()),
                              b.getReason().cStr());
         });
}

std::string files_text(capnp::List<ShardFile>::Reader files) {
  std::string all;
  for (auto f : files)
    all += fmt::format("{}{}/{}", all.empty() ? "" : " ", f.getNode().cStr(), f.getName().cStr());
  return all;
}

/// Of saves that are older than the one that has ended.
std::string open_text(StepFinalized::Reader b) {
  return b.getOpenFrom() > b.getKey().getSave() ? ""
                                                : fmt::format(", save {} is open", b.getOpenFrom());
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
                            return fmt::format("CommitStep g{} step {}{}: {}", g,
                                               b.getKey().getStep(),
                                               b.getCommitted() ? ", complete elsewhere" : "",
                                               files_text(b.getFiles()));
                          }) ||
         told<StepCommitted>(out, m,
                             [](auto& b, auto g) {
                               return fmt::format("StepCommitted g{} {} step {} {}{}", g,
                                                  b.getNode().cStr(), b.getKey().getStep(),
                                                  b.getComplete()
                                                      ? "complete"
                                                      : fmt::format("not: {}", b.getWhy().cStr()),
                                                  b.getShared() ? ", shared" : "");
                             }) ||
         told<StepFinalized>(out, m, [](auto& b, auto g) {
           return fmt::format("StepFinalized g{} step {} {}", g, b.getKey().getStep(),
                              b.getComplete() ? "complete" + open_text(b)
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

} // namespace troupe::actors::testing
