#include "kube/job_status.hpp"

#include "kube/job_objects.hpp"
#include "kube/node_pod.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

namespace troupe::kube {

namespace {

namespace json = boost::json;

/// What keeps a job from going on.
constexpr auto blocked = "Blocked";

std::string waiting_reason(const json::value& pod) {
  for (const auto& c : items(pod, {"status", "containerStatuses"}))
    if (auto reason = text(c, {"state", "waiting", "reason"});
        !reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing")
      return reason + ": " + text(c, {"state", "waiting", "message"});
  for (const auto& c : items(pod, {"status", "conditions"}))
    if (text(c, {"type"}) == "PodScheduled" && text(c, {"status"}) == "False")
      return text(c, {"reason"}) + ": " + text(c, {"message"});
  return {};
}

/// A kubelet gives the last lines of the log (terminationMessagePolicy), as "HH:MM:SS.mmm  error:
/// TEXT"; TEXT may have the word as well. A master that could not begin says "actor-master: TEXT".
std::string last_error(const std::string& log) {
  constexpr std::string_view time = "HH:MM:SS.mmm", severity = "  error: ";
  constexpr std::string_view program = "actor-master: ";
  std::string last;
  for (std::size_t from = 0, end = 0; from < log.size(); from = end + 1) {
    end = std::min(log.find('\n', from), log.size());
    const auto line = std::string_view(log).substr(from, end - from);
    if (line.size() > time.size() && line.substr(time.size(), severity.size()) == severity)
      last = line.substr(time.size() + severity.size());
    else if (line.substr(0, program.size()) == program)
      last = line.substr(program.size());
  }
  return last;
}

bool is_scheduled(const json::value& pod) {
  const auto& all = items(pod, {"status", "conditions"});
  return std::any_of(all.begin(), all.end(), [](const json::value& c) {
    return text(c, {"type"}) == "PodScheduled" && text(c, {"status"}) == "True";
  });
}

std::uint32_t number_of(const std::string& label) {
  std::uint32_t number = 0;
  std::from_chars(label.data(), label.data() + label.size(), number);
  return number;
}

} // namespace

job_pod read_job_pod(const json::value& pod) {
  job_pod p;
  p.uid = text(pod, {"metadata", "uid"});
  p.name = text(pod, {"metadata", "name"});
  p.role = label(pod, role_label);
  p.job_uid = label(pod, job_uid_label);
  p.phase = text(pod, {"status", "phase"});
  p.reason = text(pod, {"status", "reason"});
  p.is_being_deleted = !text(pod, {"metadata", "deletionTimestamp"}).empty();
  p.is_placed = is_scheduled(pod);
  p.attempt = number_of(label(pod, index_label));
  p.rank = label(pod, rank_label);
  p.restarts = number_of(annotation(pod, restarts_annotation));
  if (p.phase == "Pending")
    p.waits_for = waiting_reason(pod);
  if (const auto& all = items(pod, {"status", "containerStatuses"}); !all.empty()) {
    p.exit_code = number(all[0], {"state", "terminated", "exitCode"});
    if (const auto why = text(all[0], {"state", "terminated", "reason"}); p.reason.empty())
      p.reason = why;
    p.error = last_error(text(all[0], {"state", "terminated", "message"}));
  }
  return p;
}

void job_status::take_up(const json::value& object) {
  phase_ = text(object, {"status", "phase"});
  started_ = text(object, {"status", "status", "startTime"});
  completed_ = text(object, {"status", "status", "completionTime"});
  for (const auto& c : items(object, {"status", "status", "conditions"}))
    conditions_[text(c, {"type"})] = {text(c, {"status"}) == "True", text(c, {"reason"}),
                                      text(c, {"message"}), text(c, {"lastTransitionTime"})};
}

void job_status::set(const std::string& type, bool is, const std::string& reason,
                     const std::string& message, const std::string& now) {
  auto& c = conditions_[type];
  if (c.is != is || c.changed.empty())
    c.changed = now;
  c.is = is;
  c.reason = reason;
  c.message = message;
}

bool job_status::enter(const std::string& phase, const std::string& reason,
                       const std::string& message, const std::string& now) {
  if (phase == phase_)
    return false;
  for (auto& [type, c] : conditions_)
    if (c.is && type != "Created" && type != blocked)
      set(type, false, c.reason, c.message, now);
  set(phase, true, reason, message, now);
  phase_ = phase;
  if (started_.empty() && phase == "Running")
    started_ = now;
  completed_ = is_over() ? now : std::string();
  return true;
}

void job_status::trouble(const std::string& reason, const std::string& message,
                         const std::string& now) {
  if (!reason.empty())
    set(blocked, true, reason, message, now);
  else if (const auto found = conditions_.find(blocked);
           found != conditions_.end() && found->second.is)
    set(blocked, false, found->second.reason, found->second.message, now);
}

std::string job_status::told_trouble() const {
  return told(blocked);
}

std::string job_status::told_reason() const {
  return told(phase_);
}

std::string job_status::told(const std::string& type) const {
  const auto found = conditions_.find(type);
  return found == conditions_.end() || !found->second.is
             ? std::string()
             : found->second.reason + ": " + found->second.message;
}

std::string job_status::reason() const {
  const auto found = conditions_.find(phase_);
  return found == conditions_.end() ? std::string() : found->second.reason;
}

void job_status::count(const std::map<std::string, job_pod>& pods) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const auto* role : {worker_role, master_role})
    counts[role] = {{"active", 0}, {"failed", 0}, {"pending", 0}, {"succeeded", 0}};
  std::map<std::string, std::uint32_t> restarts;
  for (const auto& [key, p] : pods) {
    if (p.role == worker_role)
      restarts[p.rank] = std::max(restarts[p.rank], p.restarts);
    auto& of = counts[p.role];
    of["active"] += p.phase == "Running" && !p.is_being_deleted;
    of["pending"] += p.phase == "Pending" && !p.is_being_deleted;
    of["succeeded"] += p.phase == "Succeeded";
    of["failed"] += p.phase == "Failed";
  }
  restarts_ = 0;
  for (const auto& [rank, times] : restarts)
    restarts_ += times;
  replicas_.clear();
  for (const auto& [role, of] : counts) {
    json::object each;
    for (const auto& [what, n] : of)
      each[what] = n;
    replicas_[role] = std::move(each);
  }
}

std::string job_status::patch(const std::string& uid) const {
  json::array conditions;
  for (const auto& [type, c] : conditions_)
    conditions.push_back(json::object{{"type", type},
                                      {"status", c.is ? "True" : "False"},
                                      {"reason", c.reason},
                                      {"message", c.message},
                                      {"lastTransitionTime", c.changed},
                                      {"lastUpdateTime", c.changed}});
  json::object status{{"conditions", std::move(conditions)}, {"replicaStatuses", replicas_}};
  const auto time = [](const std::string& at) {
    return at.empty() ? json::value(nullptr) : json::value(at);
  };
  status["startTime"] = time(started_);
  status["completionTime"] = time(completed_);
  return json::serialize(
      json::array{json::object{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}},
                  json::object{{"op", "add"},
                               {"path", "/status"},
                               {"value", json::object{{"phase", phase_},
                                                      {"restarts", restarts_},
                                                      {"status", std::move(status)}}}}});
}

} // namespace troupe::kube
