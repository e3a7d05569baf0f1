// How recovery_core judges the end of a generation: the cause, the budgets, the verdict.
//
// It is judged when all its members have ended, and not at the first report: by then no process of
// it is left, and what failed has been told. Each judgement ends with the verdict or in gathering.

#include "actors/master/recovery/recovery_core.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

/// The order of the questions is the policy. Work that is done is done, whatever was lost or
/// stopped since. A loss comes before failures: workers whose peer is gone fail by themselves, and
/// their node would pay for another one's power cut. A reason of the planner itself comes last,
/// since something may fail while a generation is being stopped, and that is a failure like any
/// other.
void recovery_core::judge(effects& out, instant now, const std::optional<std::string>& why) {
  if (finished_.size() == members_.size() && !planned_ && !asked_to_end_)
    return conclude(out, now, ending::finished, "every worker finished");
  if (finished_.size() == members_.size())
    return as_planned(out, now);
  const bool explained = !lost_.empty() || !failures_.empty() || stopped_for_;
  unexplained_ = explained ? 0 : unexplained_ + 1;
  // A member that fell by a bug has stopped nothing.
  // Its node would run the old generation beside the next one. The members are gone with the
  // generation, so the planner speaks to the nodes itself.
  TROUPE_RARE_IF(!explained, "planner: a generation ends without a cause outside the master");
  if (!explained)
    stop_members(out, why.value_or("it was stopped"));
  // A bug of the master that ends each generation would else restart the job for ever, at no cost
  // and without a word about the cause.
  if (unexplained_ > limits::unexplained_ends_max)
    return conclude(out, now, ending::failed,
                    fmt::format("generation {} ended, as the {} before it, and no node or worker "
                                "has failed: {}",
                                count_of(current_), unexplained_ - 1, why.value_or("no reason")));
  if (const auto lost = lost_as_the_cause()) {
    TROUPE_RARE_IF(!failures_.empty(), "planner: failures are put down to the loss of a node");
    restart_free(out, now, fmt::format("node {} is lost", *lost), "node lost");
  } else if (!failures_.empty()) {
    TROUPE_RARE_IF(!lost_.empty(), "planner: a node is lost long after the workers failed");
    // A machine or a link may be broken: the next world is formed of nodes that were checked since.
    if (const auto which = failures_.root_cause().judged.which;
        which == exit_class::HARDWARE || which == exit_class::HUNG || which == exit_class::NETWORK)
      roster_.forget_checks();
    return take_failure(out, now);
  } else {
    // By the planner's own plan, or since it could not be formed: no worker is to blame.
    restart_free(out, now, stopped_for_.value_or(why.value_or("it was stopped")),
                 stopped_for_ ? "planned" : "not formed");
  }
  // It costs no restart. A standby, a smaller world or the same nodes again: gathering decides
  // which.
  become_gathering(out, now);
}

/// One message for all, past the members: these have ended with their generation.
void recovery_core::stop_members(effects& out, const std::string& reason) {
  std::vector<node_name> members;
  for (const auto& [node, which] : members_)
    members.push_back(node);
  out.push_back(direct{std::move(members),
                       author_.write<Stop>(current_, [&](auto b) { b.setReason(reason); }).any()});
}

/// Workers fail when a peer's node dies, and the node, not they, is then the cause: a loss that is
/// noticed within a lease after the first failure counts, since silence is noticed only then.
/// Later than that, the node was still there when the workers failed.
std::optional<node_name> recovery_core::lost_as_the_cause() const {
  for (const auto& [node, since] : lost_)
    if (failures_.empty() || since <= failures_.root_cause().shown_at + options_.lease)
      return node;
  return std::nullopt;
}

// ---- budgets ----

/// Only the root cause is asked: what broken hardware does to its peers looks like software.
/// Another start on a broken machine would fail again, and each of them would cost a restart. Where
/// no other can take its place the failure is one like any other: the machine may do for some time.
/// A cluster is believed to have another one; if it has none, that is its user's to see.
void recovery_core::take_failure(effects& out, instant now) {
  const auto& root = failures_.root_cause();
  const bool spare = roster_.is_spare(root.node);
  if (treatment_of(root.judged.which).part_with_node && ladder_.may_replace(spare)) {
    ladder_.ended(root.shown_at - works_since_);
    return part_with_node(out, now, std::nullopt);
  }
  const auto step = ladder_.failed(now, root, root.shown_at - works_since_, spare,
                                   members_.size() > 1 ? root.node : std::string());
  switch (step.is) {
  case restart_ladder::rung::restart:
    return restart_counted(out, now, step);
  case restart_ladder::rung::replace:
    return part_with_node(out, now, step);
  case restart_ladder::rung::end:
    return conclude(out, now, ending::failed,
                    fmt::format("{}; {}", failures_.root_cause_in_words(), step.why),
                    step.exit_code);
  }
}

/// The next world is formed without it, of nodes that are here or that the cluster gives.
void recovery_core::part_with_node(effects& out, instant now,
                                   const std::optional<restart_ladder::step>& step) {
  const auto node = failures_.root_cause().node;
  const auto& treatment = treatment_of(failures_.root_cause().judged.which);
  const bool is_broken = !step;
  TROUPE_RARE_IF(is_broken, "planner: a node is excluded for its hardware");
  const auto cause = is_broken ? failures_.root_cause_in_words()
                               : fmt::format("{}; {}", failures_.root_cause_in_words(), step->why);
  if (step)
    record_restart(out, *step);
  account_.restarted(is_broken ? treatment.name : "node given up");
  out.push_back(note{
      {log::level::notice,
       "node_excluded",
       is_broken ? fmt::format("{}; restarting without node {} (not counted against "
                               "--max-restarts)",
                               cause, node)
       : options_.cluster_replaces
           ? fmt::format("{}; node {} leaves, and another machine is wanted in its "
                         "place",
                         cause, node)
           : fmt::format("{}; node {} leaves, and the others train on without it", cause, node),
       {{"generation", static_cast<std::int64_t>(current_.value)},
        {"node", node},
        {"cause", cause},
        {"exit_class", std::string(treatment.name)}}}});
  // Forgotten at once, and not by the NodeLost that follows: the next line would give it its ranks
  // again. That NodeLost then finds a node that is not known, and means nothing.
  if (step && options_.cluster_replaces)
    out.push_back(recall_restarts{ladder_.used()});
  if (is_broken)
    out.push_back(mark{node, roster_.address(node), cause});
  out.push_back(replace{node, roster_.address(node), is_broken, cause});
  // What a broken machine has in its memory may be broken, too.
  if (is_broken) {
    out.push_back(evict{node, cause, false});
  } else {
    std::vector<node_name> members;
    for (const auto& [member, which] : members_)
      members.push_back(member);
    ask_to_leave(out, std::move(members), current_, node, cause);
    partings_.begin(node, members_.at(node),
                    now + roster_.stop_within(node).value_or(sizes_.stop_within) +
                        limits::last_saves_within + sizes_.prepare_slack,
                    cause);
  }
  roster_.forget(now, node);
  become_gathering(out, now);
}

void recovery_core::ask_to_leave(effects& out, std::vector<node_name> told, generation its,
                                 const node_name& node, const std::string& reason) {
  const auto wish = author_.write<Leave>(its, [&](auto b) {
    b.setNode(node);
    b.setReason(reason);
  });
  out.push_back(direct{std::move(told), wish.any()});
}

void recovery_core::record_restart(effects& out, const restart_ladder::step& step) {
  out.push_back(record{author_
                           .write<RestartCounted>(current_,
                                                  [&](auto b) {
                                                    b.setGeneration(current_.value);
                                                    ladder_.write(b, failures_.root_cause().node,
                                                                  step);
                                                    failures_.write(b.initFailures(
                                                        static_cast<unsigned>(failures_.size())));
                                                  })
                           .any()});
}

/// The counted restart and the next number go to the journal together, in this order, and the next
/// generation starts behind both. A master that falls in between has counted against the node all
/// the same.
void recovery_core::restart_counted(effects& out, instant now, const restart_ladder::step& step) {
  const auto& root = failures_.root_cause();
  const auto& treatment = treatment_of(root.judged.which);
  const auto cause = failures_.root_cause_in_words();
  account_.restarted(root.judged.which == exit_class::SOFTWARE ? "program failed" : treatment.name);
  // `job` counts against the same node when the next generation starts, so its budget and this one
  // agree.
  count_next_ = root.node;
  record_restart(out, step);
  out.push_back(
      note{{log::level::notice,
            "restarting",
            fmt::format("{}; restarting the workers{} (restart {} of {}{})", cause,
                        ladder_.pause_in_words(step.pause), ladder_.used(root.node),
                        ladder_.allowed(), members_.size() > 1 ? " of node " + root.node : ""),
            {{"generation", static_cast<std::int64_t>(current_.value)},
             {"cause", cause},
             {"exit_class", std::string(treatment.name)},
             {"pause_ms", milliseconds_of(step.pause)},
             {"restart_count", static_cast<std::int64_t>(ladder_.count())}}}});
  become_gathering(out, now);
}

/// No record: nothing is counted, and the number of the next generation is a record of its own.
/// What was counted stays as it is: a loss says nothing about the program.
void recovery_core::restart_free(effects& out, instant now, const std::string& cause,
                                 const std::string& kind) {
  // A world that was never sealed has trained nothing: its end is told as the loss that caused it.
  TROUPE_RARE_IF(!was_sealed_, "planner: a generation ends that was never sealed");
  if (!was_sealed_)
    return;
  ladder_.ended(now - works_since_);
  account_.restarted(kind);
  out.push_back(note{{log::level::notice,
                      "restarting",
                      fmt::format("{}; restarting the workers (not counted against "
                                  "--max-restarts)",
                                  cause),
                      {{"generation", static_cast<std::int64_t>(current_.value)},
                       {"cause", cause},
                       {"exit_class", kind},
                       {"restart_count", static_cast<std::int64_t>(ladder_.count())}}}});
}

// ---- the verdict ----

/// In this order. The record is first: no node may hear a verdict that a later master could decide
/// otherwise. The nodes hear it before membership does, which from then on takes their going for a
/// farewell and not for a loss. The generation ends after that, so its members send no Stop: a node
/// ends its workers on the verdict. Whatever runs the master hears it last.
void recovery_core::conclude(effects& out, instant now, ending how, const std::string& reason,
                             std::uint8_t exit_code) {
  const bool success = how == ending::finished;
  phase_.become(phase::concluded);
  phase_since_ = now;
  waiting_.end();
  out.push_back(record{author_
                           .write<Concluded>(current_,
                                             [&](auto b) {
                                               b.setSuccess(success);
                                               b.setReason(reason);
                                               b.setExitCode(exit_code);
                                             })
                           .any()});
  out.push_back(note{{how == ending::failed ? log::level::error : log::level::notice,
                      "job_concluded",
                      fmt::format("the job {}: {}{}",
                                  success                  ? "has finished"
                                  : how == ending::stopped ? "ends"
                                                           : "has failed",
                                  reason, account_.in_words()),
                      {{"success", success},
                       {"reason", reason},
                       {"restarts", static_cast<std::int64_t>(account_.restarts())}}}});
  conclusion_ = author_
                    .write<Conclude>(current_,
                                     [&](auto b) {
                                       b.setSuccess(success);
                                       b.setReason(reason);
                                       b.setExitCode(exit_code);
                                       failures_.write(
                                           b.initFailures(static_cast<unsigned>(failures_.size())));
                                     })
                    .any();
  out.push_back(direct{roster_.everyone(), conclusion_});
  out.push_back(announce_end{});
  // Nothing is up when the end of a generation, or a wait in vain, is what the verdict is about.
  if (in_the_tree_)
    out.push_back(stop_generation{current_, reason, true});
  out.push_back(verdict{success, reason, exit_code});
}

} // namespace troupe::actors
