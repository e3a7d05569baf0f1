// What job_core asks for next, and what comes of it.
#include "kube/job_core.hpp"
#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::kube {

namespace json = boost::json;

job_core::next_step job_core::next(const moment& now) {
  if (job_.is_being_deleted)
    return refused_until_ ? std::nullopt : next_of_deleted();
  if (auto body = status_.patch(job_.uid); body != status_written_) {
    if (!status_at_ || now.at >= *status_at_) {
      status_at_.reset();
      status_written_ = body;
      return {
          {step::status,
           {"PATCH", job_path(job_) + "/status", "application/json-patch+json", std::move(body)}}};
    }
  } else {
    status_at_.reset();
  }
  if (!refused_until_)
    if (auto more = status_.is_over() ? next_of_over(now) : next_of_live(now))
      return more;
  if (!events_.empty())
    return {{step::event, event_of(events_.front())}};
  return std::nullopt;
}

job_core::next_step job_core::next_of_deleted() const {
  const auto& all = job_.finalizers;
  if (std::find(all.begin(), all.end(), finalizer) == all.end())
    return std::nullopt;
  if (!binding_removed_)
    return {{step::remove_binding, remove_machines_binding(job_)}};
  return {{step::let_go, change_finalizers("remove")}};
}

/// A pod that waits for room would be started for nothing; one that runs is about to end.
job_core::next_step job_core::next_of_over(const moment& now) {
  const auto age = over_at_ ? now.at - *over_at_ : duration::zero();
  for (const auto& [uid, p] : pods_)
    if (p.is_live() && (p.phase == "Pending" || age >= limits::pods_end_within) &&
        may_remove(now, p))
      return remove(now, p);
  if (job_.keep_for && over_at_ && age >= *job_.keep_for)
    return {{step::remove_job, remove_job(job_)}};
  return std::nullopt;
}

job_core::next_step job_core::next_of_live(const moment& now) {
  const auto& all = job_.finalizers;
  if (!options_.policy.machines_role.empty() &&
      std::find(all.begin(), all.end(), finalizer) == all.end())
    return {{step::hold, change_finalizers("add")}};
  if (job_.is_suspended)
    return next_of_suspended(now);
  if (needs_.empty())
    needs_ = what_a_master_needs(job_, options_.policy, how_master_is_found());
  if (needs_done_ < needs_.size())
    return {{step::need, needs_[needs_done_]}};
  if (!token_.is_there())
    return {{step::token, token_.next(job_, options_.token)}};
  if (auto more = next_of_master(now))
    return more;
  if (const auto* old = ended_master_too_many(now))
    return remove(now, *old);
  return std::nullopt;
}

master_found_by job_core::how_master_is_found() const {
  const bool any_older = std::any_of(pods_.begin(), pods_.end(), [this](const auto& each) {
    const auto& p = each.second;
    return p.role == master_role && p.is_live() && p.job_uid != job_.uid;
  });
  return any_older ? master_found_by::name : master_found_by::uid;
}

/// For their logs some stay; a master that can never begin leaves one after the other.
const job_pod* job_core::ended_master_too_many(const moment& now) const {
  const job_pod* oldest = nullptr;
  std::size_t ended = 0;
  for (const auto& [uid, p] : pods_) {
    if (p.role != master_role || !p.has_ended() || p.is_being_deleted)
      continue;
    ++ended;
    if (oldest == nullptr || p.attempt < oldest->attempt)
      oldest = &p;
  }
  return ended > limits::ended_pods_kept && may_remove(now, *oldest) ? oldest : nullptr;
}

job_core::next_step job_core::next_of_suspended(const moment& now) {
  for (const auto& [uid, p] : pods_)
    if (p.is_live() && may_remove(now, p))
      return remove(now, p);
  return std::nullopt;
}

bool job_core::may_remove(const moment& now, const job_pod& p) const {
  const auto asked = removing_.find(p.uid);
  return asked == removing_.end() || now.at >= asked->second + limits::pod_told_within;
}

job_core::next_step job_core::remove(const moment& now, const job_pod& p) {
  removing_[p.uid] = now.at;
  removed_last_ = p.uid;
  return {{step::remove_pod, remove_pod(job_, p.name, p.uid)}};
}

job_core::next_step job_core::next_of_master(const moment& now) {
  // Its watch event is late, or it was gone before it could be told, or the name is another's.
  if (!created_.empty() && created_until_ && now.at >= *created_until_)
    return {
        {step::look,
         {"GET", fmt::format("/api/v1/namespaces/{}/pods/{}", job_.name_space, created_), "", ""}}};
  const auto* newest = newest_master();
  if (!created_.empty() || (newest != nullptr && newest->is_live()) ||
      (next_master_at_ && now.at < *next_master_at_))
    return std::nullopt;
  const auto& config = options_.policy.topology_config;
  if (!config.empty() && !topology_)
    return {{step::topology,
             {"GET", fmt::format("/api/v1/namespaces/{}/configmaps/{}", job_.name_space, config),
              "", ""}}};
  return {{step::master,
           create_master_pod(job_, options_.policy, attempt_, topology_.value_or(false))}};
}

/// Of the version that was read: others have finalizers, too.
api_request job_core::change_finalizers(const char* op) const {
  json::array list;
  for (const auto& f : job_.finalizers)
    if (f != finalizer)
      list.emplace_back(f);
  if (op == std::string_view("add"))
    list.emplace_back(finalizer);
  const json::object body{{"metadata", json::object{{"resourceVersion", job_.version},
                                                    {"finalizers", std::move(list)}}}};
  return {"PATCH", job_path(job_), "application/merge-patch+json", json::serialize(body)};
}

api_request job_core::event_of(const told_event& e) const {
  const json::object about{{"apiVersion", elastic_job_group},
                           {"kind", "ElasticJob"},
                           {"name", job_.name},
                           {"namespace", job_.name_space},
                           {"uid", job_.uid}};
  const json::object body{{"apiVersion", "v1"},
                          {"kind", "Event"},
                          {"metadata", json::object{{"generateName", label_of(job_.name) + "."},
                                                    {"namespace", job_.name_space}}},
                          {"involvedObject", about},
                          {"reason", e.reason},
                          {"message", e.message},
                          {"type", e.is_warning ? "Warning" : "Normal"},
                          {"source", json::object{{"component", "troupe-operator"}}},
                          {"firstTimestamp", e.utc},
                          {"lastTimestamp", e.utc},
                          {"count", 1}};
  return {"POST", fmt::format("/api/v1/namespaces/{}/events", job_.name_space), "application/json",
          json::serialize(body)};
}

// ---- What came of it ----

job_core::effects job_core::answered(const moment& now, std::uint64_t number, const api_answer& a) {
  effects out;
  if (!asked_ || asked_->first != number)
    return out;
  const auto s = std::exchange(asked_, std::nullopt)->second;
  if (a.status >= 200 && a.status < 300) {
    done(s, a, now);
    if (s != step::status && s != step::event) {
      again_.reset();
      // What pods say of themselves is not mended by a request that succeeds.
      if (!is_blocked_by(pod_pending) && !is_blocked_by(failed_start))
        blocked(out, now, "", "");
    }
  } else {
    refused(out, now, s, a);
  }
  go_on(out, now);
  return out;
}

void job_core::done(step s, const api_answer& a, const moment& now) {
  switch (s) {
  case step::need:
    ++needs_done_;
    break;
  case step::token:
    if (const auto rest = token_.answered(job_, a); rest && *rest > duration::zero())
      again_at_ = now.at + *rest;
    break;
  case step::topology: {
    const auto config = parsed(a.body);
    topology_ = config && text(*config, {"data", "topology_config"}).find_first_not_of(" \t\r\n") !=
                              std::string::npos;
    break;
  }
  case step::master:
    created_ = master_pod_name(job_.name, attempt_);
    created_until_ = now.at + limits::pod_told_within;
    refused_again_.reset();
    topology_.reset(); // by the next master it may be another
    break;
  case step::look:
    take_looked_at(a, now);
    break;
  case step::remove_binding:
    binding_removed_ = true;
    break;
  case step::status:
    status_at_ = now.at + limits::status_again;
    break;
  case step::event:
    events_.pop_front();
    break;
  case step::hold:
  case step::remove_pod:
  case step::let_go:
  case step::remove_job:
    break;
  }
  // What was changed is told by the watch; until then the same would be asked for again.
  if (s == step::hold || s == step::let_go || s == step::remove_job)
    again_at_ = now.at + limits::job_again_first;
}

void job_core::take_looked_at(const api_answer& a, const moment& now) {
  const auto pod = parsed(a.body);
  created_until_ = now.at + limits::pod_told_within;
  if (pod && controller_of(*pod) == job_.uid && label(*pod, role_label) == master_role) {
    take_pod(now, *pod);
  } else {
    created_.clear();
    ++attempt_;
  }
}

/// A refusal that says what was to be found out, or that it was done before.
bool job_core::is_settled_by(effects& out, const moment& now, step s, const api_answer& a) {
  const bool is_gone = a.status == 404;
  if (s == step::token) {
    return token_.answered(job_, a).has_value();
  } else if (s == step::remove_binding && a.status == 403) {
    binding_removed_ = true;
    out.push_back(note{
        {log::level::warning,
         "machines_binding_left",
         fmt::format("ElasticJob {0}/{1}: the operator has no right any more to remove the "
                     "ClusterRoleBinding {2}, so a later job of this name may mark machines. A "
                     "person may: kubectl delete clusterrolebinding {2}",
                     job_.name_space, job_.name, machines_binding_name(job_)),
         {{"job", job_.name}, {"namespace", job_.name_space}}}});
  } else if (s == step::look && is_gone) {
    created_.clear();
    ++attempt_;
  } else if (s == step::topology && is_gone) {
    topology_ = false;
  } else if (s == step::remove_binding && is_gone) {
    binding_removed_ = true;
  } else if (s == step::master && a.status == 409) {
    // Its watch event is late, or the name is another's: it is looked at.
    created_ = master_pod_name(job_.name, attempt_);
    created_until_ = now.at;
  } else if (s == step::need && is_gone &&
             needs_[needs_done_].target.find("disruption") != std::string::npos) {
    if (auto older = budget_before_1_21(needs_[needs_done_])) {
      needs_[needs_done_] = std::move(*older);
    } else {
      say(now, "NoDisruptionBudget",
          "the cluster has no PodDisruptionBudgets: a drain may take several pods at once", true);
      ++needs_done_;
    }
  } else {
    return false;
  }
  return true;
}

void job_core::refused(effects& out, const moment& now, step s, const api_answer& a) {
  if (is_settled_by(out, now, s, a))
    return;
  const bool is_gone = a.status == 404;
  if (s == step::event && !is_passing(a) && a.status != 401) {
    events_.pop_front(); // an event is for people; that it may not be written is in the log
    out.push_back(note{{log::level::debug, "event_refused", kube::in_words(a), {}}});
    return;
  }
  if (s == step::remove_pod)
    removing_.erase(removed_last_);
  if (s == step::master)
    need_again(); // a server may miss the account, or another thing that was collected
  if (s == step::status)
    status_written_.clear();
  if (s == step::status && !is_passing(a) && a.status != 401 && a.status != 409)
    return status_refused(out, now, a);
  rest(now, a);
  if (is_passing(a) || a.status == 401 || a.status == 409 ||
      (is_gone && (s == step::remove_pod || s == step::let_go)))
    return;
  refused_until_ = now.at + refused_again_.next();
  again_at_.reset();
  const bool is_made = s == step::need || s == step::token || s == step::master;
  blocked(out, now,
          a.status == 403 ? "Forbidden"
          : is_gone       ? "NotFound"
                          : "Refused",
          fmt::format("{}: {}",
                      is_made ? "what its master needs cannot be made" : "a change was refused",
                      kube::in_words(a)));
}

/// What the job needs is made all the same. The job that the status is of may be gone (404), or
/// another may be there under its name, which the test of its uid finds (422, without a reason of
/// the object's).
void job_core::status_refused(effects& out, const moment& now, const api_answer& a) {
  status_at_ = now.at + limits::job_again_most;
  const auto why = kube::in_words(a);
  if (a.status != 404 && (a.status != 422 || why.find("is invalid") != std::string::npos))
    blocked(out, now, a.status == 403 ? "Forbidden" : "Refused",
            "its status cannot be written: " + why);
}

void job_core::rest(const moment& now, const api_answer& a) {
  auto wait = again_.next();
  wait += std::chrono::duration_cast<duration>(wait * random_.unit() / 2);
  if (a.retry_after)
    wait = std::max(wait, std::min<duration>(*a.retry_after, limits::mark_retry_after_most));
  again_at_ = now.at + wait;
}

} // namespace troupe::kube
