#include "kube/job_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

/// Of a master that could not begin: nothing is said of training, which goes on.
constexpr std::int64_t not_begun = 75;

/// Ends of a master that the next one would not mend.
const char* why_for_good(std::int64_t exit_code) {
  switch (exit_code) {
  case 1:
    return "training has failed for good: the log of the master's pod says which rank was first";
  case 2:
    return "the master's command line is wrong: its log says which word";
  case 3:
    return "training has made no progress (--no-progress-limit)";
  default:
    return nullptr;
  }
}

/// All of it that people write: the annotations, which no generation counts, and the spec.
std::string what_is_said(const json::value& object) {
  std::string said;
  for (const auto* part : {member(object, {"metadata", "annotations"}), member(object, {"spec"})})
    said += part != nullptr ? json::serialize(*part) : "-";
  return said;
}

bool was_killed_by_cluster(const job_pod& p) {
  return p.reason == "Evicted" || p.reason == "Preempting" || p.reason == "NodeLost" ||
         p.reason == "Shutdown" || p.reason == "OOMKilled";
}

} // namespace

job_core::job_core(options o)
    : options_(std::move(o)), again_(limits::job_again_first, limits::job_again_most),
      master_again_(limits::job_again_first, limits::job_again_most),
      refused_again_(limits::job_refused_first, limits::job_again_most), random_(options_.seed) {}

job_core::effects job_core::job_is(const moment& now, const json::value& object) {
  effects out;
  auto identity = elastic_job_identity(object);
  auto said = what_is_said(object);
  const bool is_new = !is_known_ || said != said_;
  if (!is_known_) {
    status_.take_up(object);
    trouble_ = status_.told_trouble();
    if (!status_.phase().empty())
      out.push_back(note{{log::level::info,
                          "job_taken_up",
                          fmt::format("ElasticJob {}/{}, which an operator has run before, is {}",
                                      identity.name_space, identity.name, status_.phase()),
                          {{"job", identity.name},
                           {"namespace", identity.name_space},
                           {"phase", status_.phase()}}}});
  }
  is_known_ = true;
  if (!is_new) {
    job_.version = identity.version;
    job_.finalizers = identity.finalizers;
    job_.is_being_deleted = identity.is_being_deleted;
    go_on(out, now);
    return out;
  }
  said_ = std::move(said);
  auto read = read_elastic_job(object);
  mistake_ = read ? std::nullopt : std::optional(read.error().what);
  job_ = read ? std::move(*read) : std::move(identity);
  need_again();
  for (const auto& remark : job_.remarks)
    say(now, "TakenOtherwise", remark, true);
  again_at_.reset();
  refused_until_.reset();
  refused_again_.reset();
  go_on(out, now);
  return out;
}

job_core::effects job_core::pod_is(const moment& now, const json::value& object) {
  effects out;
  take_pod(now, object);
  go_on(out, now);
  return out;
}

void job_core::take_pod(const moment& now, const json::value& object) {
  auto p = read_job_pod(object);
  if (p.role == master_role) {
    if (p.name == created_)
      created_.clear();
    attempt_ = std::max(attempt_, p.attempt + 1);
    if (p.phase == "Running" && !runs_since_)
      runs_since_ = now.at;
  }
  if (pods_.size() < limits::job_pods_max || pods_.count(p.uid) != 0)
    pods_[p.uid] = std::move(p);
}

job_core::effects job_core::pod_gone(const moment& now, const std::string& uid) {
  effects out;
  pods_.erase(uid);
  removing_.erase(uid);
  go_on(out, now);
  return out;
}

job_core::effects job_core::all_told(const moment& now) {
  effects out;
  pods_told_ = true;
  go_on(out, now);
  return out;
}

job_core::effects job_core::tick(const moment& now) {
  effects out;
  go_on(out, now);
  return out;
}

/// What was due by now has been looked at.
void job_core::plan_wakeup(const moment& now) {
  wakeup_.reset();
  if (asked_)
    return;
  const auto later = [&](std::optional<instant> at) {
    if (at && *at > now.at && (!wakeup_ || *at < *wakeup_))
      wakeup_ = at;
  };
  later(again_at_);
  if (again_at_)
    return;
  later(status_at_);
  later(refused_until_);
  if (refused_until_)
    return;
  for (const auto& at : {created_until_, next_master_at_, restarting_at_, needed_again_at_})
    later(at);
  for (const auto& [uid, asked] : removing_)
    later(asked + limits::pod_told_within);
  if (runs_since_ && is_blocked_by(failed_start))
    later(*runs_since_ + limits::master_ran_long);
  if (over_at_) {
    later(*over_at_ + limits::pods_end_within);
    if (job_.keep_for)
      later(*over_at_ + *job_.keep_for);
  }
}

void job_core::go_on(effects& out, const moment& now) {
  if (!is_known_ || !pods_told_)
    return;
  judge(out, now);
  if (!asked_ && (!again_at_ || now.at >= *again_at_)) {
    again_at_.reset();
    if (refused_until_ && now.at >= *refused_until_)
      refused_until_.reset();
    if (auto following = next(now)) {
      asked_ = {++last_number_, following->first};
      out.push_back(call{last_number_, std::move(following->second)});
    }
  }
  plan_wakeup(now);
}

// ---- What is so ----

void job_core::judge(effects& out, const moment& now) {
  status_.count(pods_);
  if (job_.is_being_deleted)
    return;
  if (mistake_)
    return enter(out, now, "Failed", "InvalidSpec", *mistake_);
  if (status_.is_over() && status_.reason() != "InvalidSpec") {
    if (!over_at_)
      over_at_ = now.at;
    return;
  }
  const bool any_live =
      std::any_of(pods_.begin(), pods_.end(), [](const auto& p) { return !p.second.has_ended(); });
  if (job_.is_suspended && !any_live)
    return enter(out, now, "Suspended", "Suspended", "spec.suspend is set: it has no pods");
  if (job_.is_suspended)
    return;
  if (status_.phase().empty() || status_.reason() == "InvalidSpec")
    enter(out, now, "Created", "Accepted", "the operator makes its master's pod");
  judge_master(out, now);
  if (status_.is_over())
    return;
  judge_nodes(out, now);
  judge_waits(now);
}

void job_core::need_again() {
  needs_.clear();
  needs_done_ = 0;
  token_.look_again();
  // An answer to one of the earlier ones says nothing of these.
  if (asked_ && asked_->second == step::need)
    asked_.reset();
}

/// A pod that has a machine and does not begin may lack what was there when it was made.
void job_core::judge_waits(const moment& now) {
  const bool any = std::any_of(pods_.begin(), pods_.end(), [](const auto& each) {
    const auto& p = each.second;
    return p.is_live() && p.phase == "Pending" &&
           ((p.role == master_role && p.is_placed) ||
            p.waits_for.rfind("CreateContainerConfigError", 0) == 0);
  });
  if (!any) {
    needed_again_at_.reset();
  } else if (!needed_again_at_) {
    needed_again_at_ = now.at + limits::pod_told_within;
  } else if (now.at >= *needed_again_at_) {
    needed_again_at_ = now.at + limits::job_again_most;
    need_again();
  }
}

/// It stays told until a master has run for long.
void job_core::judge_failed_start(effects& out, const moment& now, const job_pod* newest) {
  if (newest != nullptr && newest->exit_code == not_begun &&
      (trouble_.empty() || is_blocked_by(pod_pending) || is_blocked_by(failed_start)))
    return blocked(out, now, failed_start,
                   newest->error.empty() ? "its pods end at once; their logs say why"
                                         : newest->error);
  if (runs_since_ && now.at >= *runs_since_ + limits::master_ran_long &&
      is_blocked_by(failed_start))
    blocked(out, now, "", "");
}

const job_pod* job_core::newest_master() const {
  const job_pod* newest = nullptr;
  for (const auto& [uid, p] : pods_)
    if (p.role == master_role && (newest == nullptr || p.attempt > newest->attempt))
      newest = &p;
  return newest;
}

void job_core::judge_master(effects& out, const moment& now) {
  const auto* newest = newest_master();
  judge_failed_start(out, now, newest);
  if (newest != nullptr && newest->is_live()) {
    next_master_at_.reset();
    return;
  }
  if (newest != nullptr && newest->phase == "Succeeded")
    return enter(out, now, "Succeeded", "Trained", "training has ended with success");
  if (newest != nullptr && newest->exit_code && !was_killed_by_cluster(*newest))
    if (const auto* why = why_for_good(*newest->exit_code))
      return enter(
          out, now, "Failed", "TrainingFailed",
          fmt::format("{} (pod {})", newest->error.empty() ? why : newest->error, newest->name));
  if (next_master_at_ || !created_.empty())
    return;
  // One that has run for long ends by bad luck, and its successor is made at once.
  if (runs_since_ && now.at - *runs_since_ >= limits::master_ran_long)
    master_again_.reset();
  const bool is_first = attempt_ == 0;
  next_master_at_ = now.at + (is_first ? duration::zero() : master_again_.next());
  runs_since_.reset();
  if (!is_first)
    need_again();
  if (!is_first)
    say(now, "MasterGone",
        fmt::format("the master's pod has ended or is gone ({}): the next one takes up its "
                    "journal; training goes on meanwhile",
                    newest == nullptr         ? "deleted"
                    : !newest->reason.empty() ? newest->reason
                    : newest->exit_code       ? fmt::format("exit code {}", *newest->exit_code)
                                              : "being deleted"),
        true);
}

void job_core::judge_nodes(effects& out, const moment& now) {
  std::uint32_t active = 0;
  std::string waits_for;
  for (const auto& [uid, p] : pods_) {
    active += p.role == worker_role && p.phase == "Running" && !p.is_being_deleted;
    if (waits_for.empty() && !p.waits_for.empty())
      waits_for = fmt::format("pod {} is pending: {}", p.name, p.waits_for);
  }
  const auto& phase = status_.phase();
  if (active != 0 || phase != "Running")
    restarting_at_.reset();
  else if (!restarting_at_)
    restarting_at_ = now.at + limits::nodes_gone_untold;
  if (active != 0)
    enter(out, now, "Running", "NodesRun", "pods of its nodes run");
  else if (restarting_at_ && now.at >= *restarting_at_)
    enter(out, now, "Restarting", "NoNodes", "no pod of a node runs any more; they are replaced");
  else if (phase != "Restarting" && phase != "Running")
    enter(out, now, "Pending", "NoNodesYet", "its pods do not run yet");
  if (!waits_for.empty() && !is_blocked_by(failed_start))
    blocked(out, now, pod_pending, waits_for);
  else if (is_blocked_by(pod_pending))
    blocked(out, now, "", "");
}

void job_core::enter(effects& out, const moment& now, const std::string& phase,
                     const std::string& reason, const std::string& message) {
  if (!status_.enter(phase, reason, message, now.utc))
    return;
  if (status_.is_over() || phase == "Suspended")
    blocked(out, now, "", "");
  const bool is_bad = phase == "Failed" || phase == "Restarting";
  say(now, reason, message, is_bad);
  out.push_back(
      note{{is_bad ? log::level::warning : log::level::notice,
            "job_phase",
            fmt::format("ElasticJob {}/{} is {}: {}", job_.name_space, job_.name, phase, message),
            {{"job", job_.name}, {"namespace", job_.name_space}, {"phase", phase}}}});
}

/// Told once; an empty reason is the end of it.
void job_core::blocked(effects& out, const moment& now, const std::string& reason,
                       const std::string& message) {
  const auto told = reason.empty() ? std::string() : reason + ": " + message;
  if (told == trouble_)
    return;
  trouble_ = told;
  status_.trouble(reason, message, now.utc);
  if (reason.empty())
    return;
  say(now, reason, message, true);
  out.push_back(
      note{{log::level::warning,
            "job_blocked",
            fmt::format("ElasticJob {}/{} does not go on: {}", job_.name_space, job_.name, message),
            {{"job", job_.name}, {"namespace", job_.name_space}, {"reason", reason}}}});
}

void job_core::say(const moment& now, const std::string& reason, const std::string& message,
                   bool is_warning) {
  if (events_.size() < limits::job_events_max)
    events_.push_back({reason, message, now.utc, is_warning});
}

std::string job_core::in_words() const {
  if (!is_known_)
    return "waits to hear of its job";
  return fmt::format("{}/{}: {}{}", job_.name_space, job_.name,
                     status_.phase().empty() ? "new" : status_.phase(),
                     trouble_.empty() ? "" : ", " + trouble_);
}

} // namespace troupe::kube
