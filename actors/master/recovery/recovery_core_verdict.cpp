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
        which == exit_class::HARDWARE || which == exit_class::HUNG)
      roster_.forget_checks();
    // Only the root cause is asked: what broken hardware does to its peers looks like software.
    if (treatment_of(failures_.root_cause().judged.which).part_with_node)
      return exclude_node(out, now);
    return count_restart(out, now);
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

/// The machine is broken: the next world is formed without it, if one can be.
/// Another start on it would fail again, and each of them would cost a restart. If the job cannot
/// be without it, the failure is treated as any other: the machine may do for some time yet.
void recovery_core::exclude_node(effects& out, instant now) {
  const auto node = failures_.root_cause().node;
  if (roster_.largest_world(roster_.claimants(node)) == 0)
    return count_restart(out, now);
  TROUPE_RARE("planner: a node is excluded for its hardware");
  const auto cause = failures_.root_cause_in_words();
  start_pause_.ended(failures_.root_cause().shown_at - works_since_);
  account_.restarted(treatment_of(failures_.root_cause().judged.which).name);
  out.push_back(note{
      {log::level::notice,
       "node_excluded",
       fmt::format("{}; restarting without node {} (not counted against "
                   "--max-restarts)",
                   cause, node),
       {{"generation", static_cast<std::int64_t>(current_.value)},
        {"node", node},
        {"cause", cause},
        {"exit_class", std::string(treatment_of(failures_.root_cause().judged.which).name)}}}});
  // Forgotten at once, and not by the NodeLost that follows: the next line would give it its ranks
  // again. That NodeLost then finds a node that is not known, and means nothing.
  out.push_back(mark{node, roster_.address(node), cause});
  out.push_back(evict{node, cause, false});
  roster_.forget(now, node);
  become_gathering(out, now);
}

/// Until the root cause showed: workers that hang in their end are no progress.
std::uint32_t recovery_core::without_progress() const {
  const bool progressed = failures_.root_cause().shown_at - works_since_ >= options_.progress_after;
  return progressed ? 0 : without_progress_ + 1;
}

/// Asked in this order: what ends a job for want of progress has an exit code of its own, which
/// must be seen also when the budget is used up at the same failure.
void recovery_core::count_restart(effects& out, instant now) {
  const auto& root = failures_.root_cause();
  const auto cause = failures_.root_cause_in_words();
  const auto whose = members_.size() > 1 ? " of node " + root.node : "";
  const auto fruitless = without_progress();
  const bool no_progress =
      options_.without_progress_max && fruitless >= *options_.without_progress_max;
  TROUPE_RARE_IF(no_progress, "planner: want of progress ends the job");
  if (no_progress)
    return conclude(out, now, ending::failed,
                    fmt::format("{}; {} generation{} in a row failed within {} of the start, "
                                "which is no progress (--no-progress-limit)",
                                cause, fruitless, fruitless == 1 ? "" : "s",
                                troupe::in_words(options_.progress_after)),
                    limits::exit_no_progress);
  // By the name of the node and for the life of the job: a launcher that is started again under its
  // name does not get a new budget.
  if (!restarts_used_.count(root.node)) {
    const auto allowed = restarts_used_.allowed();
    const auto budget =
        allowed == 0 ? std::string("no restarts are allowed (--max-restarts 0)")
        : allowed == 1
            ? fmt::format("the only restart{} is used up (--max-restarts)", whose)
            : fmt::format("all {} restarts{} are used up (--max-restarts)", allowed, whose);
    TROUPE_RARE("planner: the budget of restarts ends the job");
    return conclude(out, now, ending::failed, fmt::format("{}; {}", cause, budget));
  }
  const auto pause = start_pause_.failed(now, root.shown_at - works_since_,
                                         failure_ledger::kind_of(root.judged.which, root.message));
  if (const auto same = start_pause_.same_in_a_row(); same > restarts_used_.allowed()) {
    TROUPE_RARE("planner: one failure at the start on several nodes ends the job");
    return conclude(out, now, ending::failed,
                    fmt::format("{}; the last {} generations have failed in this way within {} of "
                                "their start, on whatever node: the next would, too "
                                "(--max-restarts {})",
                                cause, same, troupe::in_words(start_pause_.within()),
                                restarts_used_.allowed()));
  }
  // The counted restart and the next number go to the journal together, in this order, and the next
  // generation starts behind both. A master that falls in between has counted against the node all
  // the same.
  ++restart_count_;
  account_.restarted(root.judged.which == exit_class::SOFTWARE
                         ? "program failed"
                         : treatment_of(root.judged.which).name);
  const auto restarts_used = restarts_used_.used(root.node);
  // `job` counts against the same node when the next generation starts, so its budget and this one
  // agree.
  count_next_ = root.node;
  // On record with the counted restart, so that a master that is restarted does not begin to count
  // anew.
  without_progress_ = fruitless;
  TROUPE_RARE_IF(pause > duration{}, "planner: a start waits, as others have failed at theirs");
  out.push_back(record{author_
                           .write<RestartCounted>(current_,
                                                  [&](auto b) {
                                                    b.setGeneration(current_.value);
                                                    b.setRestartCount(restart_count_);
                                                    b.setNode(root.node);
                                                    b.setWithoutProgress(without_progress_);
                                                    b.setRestartsUsed(restarts_used);
                                                    b.setFailedAtStart(start_pause_.in_a_row());
                                                    b.setSameAtStart(start_pause_.same_in_a_row());
                                                    failures_.write(b.initFailures(
                                                        static_cast<unsigned>(failures_.size())));
                                                  })
                           .any()});
  out.push_back(note{
      {log::level::notice,
       "restarting",
       fmt::format("{}; restarting the workers{} (restart {} of {}{})", cause,
                   start_pause_.in_words(pause), restarts_used, restarts_used_.allowed(), whose),
       {{"generation", static_cast<std::int64_t>(current_.value)},
        {"cause", cause},
        {"exit_class", std::string(treatment_of(root.judged.which).name)},
        {"pause_ms", milliseconds_of(pause)},
        {"restart_count", static_cast<std::int64_t>(restart_count_)}}}});
  become_gathering(out, now);
}

/// No record: nothing is counted, and the number of the next generation is a record of its own.
/// `without_progress_` stays as it is: a loss says nothing about the program.
void recovery_core::restart_free(effects& out, instant now, const std::string& cause,
                                 const std::string& kind) {
  // A world that was never sealed has trained nothing: its end is told as the loss that caused it.
  TROUPE_RARE_IF(!was_sealed_, "planner: a generation ends that was never sealed");
  if (!was_sealed_)
    return;
  start_pause_.ended(now - works_since_);
  account_.restarted(kind);
  out.push_back(note{{log::level::notice,
                      "restarting",
                      fmt::format("{}; restarting the workers (not counted against "
                                  "--max-restarts)",
                                  cause),
                      {{"generation", static_cast<std::int64_t>(current_.value)},
                       {"cause", cause},
                       {"exit_class", kind},
                       {"restart_count", static_cast<std::int64_t>(restart_count_)}}}});
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
