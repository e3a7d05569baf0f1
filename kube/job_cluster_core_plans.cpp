// What job_cluster_core makes of ScalePlans.
#include "kube/job_cluster_core.hpp"
#include "kube/job_objects.hpp"
#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace json = boost::json;

/// DLRover's way to scale a job by hand. What names single pods is not done: ranks are the
/// master's.
void job_cluster_core::plan_is(effects& out, const json::value& object) {
  const auto phase = text(object, {"status", "phase"});
  const auto uid = text(object, {"metadata", "uid"});
  if (text(object, {"spec", "ownerJob"}) != options_.elastic_job || phase == "Succeeded" ||
      phase == "Failed" || plans_.count(uid) != 0)
    return;
  const auto name = text(object, {"metadata", "name"});
  if (plans_.size() < limits::plans_kept)
    plans_.emplace(uid, name);
  const auto nodes =
      number(object, {"spec", "replicaResourceSpecs", "worker", "replicas"}).value_or(0);
  if (nodes >= 1 && nodes <= limits::job_nodes_max) {
    const auto max = static_cast<std::uint32_t>(nodes);
    const auto min = job_ ? job_->nodes.min : options_.nodes.min;
    out.push_back(scale{{std::min(min, max), max}, uid});
    return;
  }
  end_plan(uid, false);
  out.push_back(note{{log::level::warning,
                      "scale_plan_refused",
                      fmt::format("ScalePlan {} is not done: "
                                  "spec.replicaResourceSpecs.worker.replicas, from 1 to {}, is all "
                                  "that is possible",
                                  name, limits::job_nodes_max),
                      {{"plan", name}}}});
}

/// Only what is on record is told as done: a master that finds the plan told so does not look at it
/// again.
job_cluster_core::effects job_cluster_core::plan_taken(instant now, const std::string& uid,
                                                       bool accepted, const std::string& why) {
  effects out;
  const auto found = plans_.find(uid);
  if (found == plans_.end())
    return out;
  const auto& name = found->second;
  out.push_back(note{{accepted ? log::level::notice : log::level::warning,
                      accepted ? "scale_plan_taken" : "scale_plan_refused",
                      fmt::format("ScalePlan {}{}: {}", name, accepted ? "" : " is not done", why),
                      {{"plan", name}}}});
  end_plan(uid, accepted);
  ask_plans(out, now);
  return out;
}

/// With its uid: another plan may have its name by then.
void job_cluster_core::end_plan(const std::string& uid, bool succeeded) {
  const auto found = plans_.find(uid);
  if (found == plans_.end())
    return;
  plans_due_.push_back(
      {"PATCH",
       fmt::format("{}/{}/status", elastic_collection(options_.name_space, "scaleplans"),
                   found->second),
       "application/json-patch+json",
       json::serialize(json::array{
           json::object{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}},
           json::object{{"op", "add"},
                        {"path", "/status"},
                        {"value", json::object{{"phase", succeeded ? "Succeeded" : "Failed"}}}}})});
  if (!plans_at_)
    plans_at_ = instant{};
}

void job_cluster_core::ask_plans(effects& out, instant now) {
  if (!plans_at_ || now < *plans_at_)
    return;
  plans_at_.reset();
  for (auto& what : std::exchange(plans_due_, {})) {
    plans_asked_[++last_number_] = what;
    out.push_back(call{of_own, last_number_, std::move(what)});
  }
}

/// A later master that finds the plan does not do it again, but the user is not told that it is
/// done.
void job_cluster_core::plan_answered(effects& out, instant now, std::uint64_t number,
                                     const api_answer& a) {
  const auto found = plans_asked_.find(number);
  if (found == plans_asked_.end())
    return;
  auto what = std::move(found->second);
  plans_asked_.erase(found);
  if (a.status == 200) {
    plans_refused_told_ = false;
    return;
  }
  if (a.status == 404 || a.status == 422)
    return; // it is gone, or another one has its name
  plans_due_.push_back(std::move(what));
  plans_at_ = now + limits::plan_told_again;
  if (!std::exchange(plans_refused_told_, true))
    out.push_back(
        note{{log::level::warning,
              "scale_plan_not_written",
              fmt::format("a ScalePlan that was taken could not be told so: {}; it is "
                          "tried again every {} s",
                          in_words(a), std::chrono::seconds(limits::plan_told_again).count()),
              {}}});
}

} // namespace troupe::kube
