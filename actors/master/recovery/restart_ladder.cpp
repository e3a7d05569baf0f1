#include "actors/master/recovery/restart_ladder.hpp"

#include "actors/limits.hpp"
#include "actors/words.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

restart_ladder::restart_ladder(options o)
    : options_(std::move(o)), nodes_(options_.of_each_node), start_(options_.start_pause) {}

/// The want of progress is asked first, as it has an exit code of its own, which must be seen also
/// when a budget is used up at the same failure.
restart_ladder::step restart_ladder::failed(instant now, const failure_ledger::failure& root,
                                            duration worked, bool spare, const std::string& whose) {
  const auto kind = failure_ledger::kind_of(root.judged.which, root.message);
  const auto pause = start_.failed(now, worked, kind, root.node);
  // Until the root cause showed: workers that hang in their end are no progress.
  const auto fruitless = worked >= options_.progress_after ? 0 : without_progress_ + 1;
  if (options_.without_progress_max && fruitless >= *options_.without_progress_max) {
    TROUPE_RARE("planner: want of progress ends the job");
    return {rung::end,
            fmt::format("{} in a row failed within {} of the start, which is no progress "
                        "(--no-progress-limit)",
                        counted(fruitless, "generation"),
                        troupe::in_words(options_.progress_after)),
            {},
            limits::exit_no_progress};
  }
  if (options_.of_job && count_ >= *options_.of_job) {
    TROUPE_RARE("planner: the budget of the whole job ends it");
    return {rung::end,
            fmt::format("{} of the job are used up (--job-restarts)", counted(count_, "restart"))};
  }
  const bool used_up = nodes_.used_up(root.node);
  // A node that left for the same failure has shown that another machine does not help, unless the
  // cluster's user has said how often it is to be tried. With no restarts at all a failure is the
  // end, as it is under torchrun.
  const auto& treatment = treatment_of(root.judged.which);
  const auto cause = kind.empty() ? std::string(treatment.name) : kind;
  const bool helps = options_.cluster_replaces || (spare && allowed() > 0 && cause != left_for_);
  if (is_same_everywhere() && (!used_up || helps)) {
    TROUPE_RARE("planner: one failure at the start on several nodes ends the job");
    return {rung::end,
            fmt::format("the last {} generations have failed in this way within {} of their start, "
                        "on whatever node: the next would, too (--max-restarts {})",
                        start_.same_in_a_row(), troupe::in_words(start_.within()), allowed())};
  }
  if (used_up && !helps) {
    TROUPE_RARE("planner: the budget of restarts ends the job");
    return {rung::end, used_up_in_words(whose)};
  }
  without_progress_ = fruitless;
  ++count_;
  if (used_up) {
    TROUPE_RARE("planner: a node leaves, as its restarts are used up");
    const step next{rung::replace, used_up_in_words(whose), pause, 0, used(root.node) + 1};
    if (options_.cluster_replaces)
      nodes_.forget(root.node);
    else
      left_for_ = cause;
    return next;
  }
  nodes_.count(root.node);
  TROUPE_RARE_IF(pause > duration{}, "planner: a start waits, as others have failed at theirs");
  return {rung::restart, {}, pause, 0, used(root.node)};
}

/// On one machine it may be the machine, as long as another one can be had.
bool restart_ladder::is_same_everywhere() const {
  return start_.same_in_a_row() > allowed() && start_.is_on_several();
}

std::string restart_ladder::used_up_in_words(const std::string& whose) const {
  const auto of = whose.empty() ? whose : " of node " + whose;
  return allowed() == 0 ? std::string("no restarts are allowed (--max-restarts 0)")
         : allowed() == 1
             ? fmt::format("the only restart{} is used up (--max-restarts)", of)
             : fmt::format("all {} restarts{} are used up (--max-restarts)", allowed(), of);
}

// ---- nodes that are waited for ----

/// Asked before the wait begins, so that a job whose budget is spent ends now and not after the
/// join timeout. The most that were missing at once count: a replacement that is lost while the
/// others are waited for leaves the same gap again.
std::optional<std::string> restart_ladder::wait_for(std::uint32_t missing) {
  waited_for_ = std::max(waited_for_, missing);
  const auto max = options_.relaunches_max;
  if (!max || relaunches_ + waited_for_ <= *max)
    return std::nullopt;
  TROUPE_RARE("planner: the budget of relaunches ends the job");
  return fmt::format("{} (--node-relaunches)",
                     *max == 0 ? "none may be waited for"
                               : fmt::format("{} of {} relaunches are used up", relaunches_, *max));
}

std::uint32_t restart_ladder::take_waited() {
  relaunches_ += waited_for_;
  return std::exchange(waited_for_, 0);
}

std::optional<std::string> restart_ladder::no_more(std::uint32_t nodes_min,
                                                   std::uint32_t nodes_max) const {
  if (!supply_ || supply_->wanted != nodes_max || supply_->nodes >= nodes_min)
    return std::nullopt;
  return supply_->why_no_more;
}

// ---- for the next master ----

void restart_ladder::write(messages::RestartCounted::Builder out, const node_name& node,
                           const step& taken) const {
  out.setRestartCount(count_);
  out.setNode(node);
  out.setWithoutProgress(without_progress_);
  out.setRestartsUsed(taken.used);
  out.setFailedAtStart(start_.in_a_row());
  out.setSameAtStart(start_.same_in_a_row());
  out.setSeveralAtStart(start_.is_on_several());
  out.setNodeLeft(taken.is == rung::replace && options_.cluster_replaces);
}

void restart_ladder::recall(messages::RestartCounted::Reader counted) {
  const node_name node = counted.getNode().cStr();
  const auto failures = counted.getFailures();
  count_ = counted.getRestartCount();
  without_progress_ = counted.getWithoutProgress();
  start_.recall(counted.getFailedAtStart(), counted.getSameAtStart(), counted.getSeveralAtStart(),
                failures.size() == 0 ? std::string()
                                     : failure_ledger::kind_of(failures[0].getExitClass(),
                                                               failures[0].getMessage().cStr()),
                node);
  // Records of an old journal do not carry the sum, so there each one counts.
  const auto sum = counted.getRestartsUsed();
  if (counted.getNodeLeft())
    nodes_.forget(node);
  else
    nodes_.recall(node, sum != 0 ? sum : used(node) + 1);
}

void restart_ladder::recall_relaunches(std::uint32_t relaunches) {
  relaunches_ = std::max(relaunches_, relaunches);
}

// ---- words ----

std::string restart_ladder::in_words() const {
  const auto of_job = options_.of_job ? fmt::format(" of {}", *options_.of_job) : std::string();
  const auto most =
      std::max_element(used().begin(), used().end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  auto words =
      fmt::format("{}{} used, {} for each node{}", counted(count_, "restart"), of_job, allowed(),
                  most == used().end() ? std::string()
                                       : fmt::format(" (node {}: {})", most->first, most->second));
  if (options_.cluster_replaces)
    words += fmt::format(", then another machine{}",
                         supply_ && !supply_->budget.empty() ? " (" + supply_->budget + ")" : "");
  if (options_.relaunches_max)
    words += fmt::format(", {} of {} relaunches", relaunches_, *options_.relaunches_max);
  return words;
}

} // namespace troupe::actors
