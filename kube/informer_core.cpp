#include "kube/informer_core.hpp"

#include "kube/elastic_job.hpp"
#include "kube/job_objects.hpp"
#include "kube/node_pod.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr std::size_t jobs_watch = 0, pods_watch = 1;

std::string collection(const std::string& root, const std::string& name_space, const char* plural) {
  return name_space.empty() ? fmt::format("{}/{}", root, plural)
                            : fmt::format("{}/namespaces/{}/{}", root, name_space, plural);
}

std::string route_of(const std::string& name_space, const std::string& label,
                     const std::string& uid) {
  return fmt::format("{}.{}.{}", name_space, label, uid);
}

void copy(json::object& to, const json::value& from, std::initializer_list<const char*> names) {
  if (const auto* object = from.if_object())
    for (const char* name : names)
      if (const auto* found = object->if_contains(name))
        to[name] = *found;
}

} // namespace

json::object slim_pod(const json::value& pod) {
  json::object meta, status;
  if (const auto* from = member(pod, {"metadata"}))
    copy(meta, *from, {"name", "namespace", "uid", "labels", "deletionTimestamp"});
  if (const auto restarts = annotation(pod, restarts_annotation); !restarts.empty())
    meta["annotations"] = json::object{{restarts_annotation, restarts}};
  if (const auto* from = member(pod, {"status"}))
    copy(status, *from, {"phase", "reason"});
  json::array conditions, containers;
  for (const auto& c : items(pod, {"status", "conditions"}))
    if (text(c, {"type"}) == "PodScheduled")
      conditions.push_back(c);
  for (const auto& c : items(pod, {"status", "containerStatuses"})) {
    json::object slim;
    copy(slim, c, {"state"});
    containers.push_back(std::move(slim));
  }
  status["conditions"] = std::move(conditions);
  status["containerStatuses"] = std::move(containers);
  return {{"metadata", std::move(meta)}, {"status", std::move(status)}};
}

informer_core::informer_core(const options& o)
    : watches_{
          watch_core(
              {collection(fmt::format("/apis/{}", elastic_job_group), o.name_space, "elasticjobs"),
               "", "", o.seed}),
          watch_core({collection("/api/v1", o.name_space, "pods"), job_label, "", o.seed + 1})} {}

informer_core::effects informer_core::start(instant now) {
  effects out;
  if (!std::exchange(started_, true))
    for (const auto of : {jobs_watch, pods_watch})
      take(out, of, watches_[of].start(now));
  return out;
}

informer_core::effects informer_core::answered(instant now, std::size_t of, std::uint64_t number,
                                               const api_answer& a) {
  effects out;
  take(out, of, watches_[of].answered(now, number, a));
  return out;
}

informer_core::effects informer_core::line(instant now, std::size_t of, std::uint64_t number,
                                           const std::string& text) {
  effects out;
  take(out, of, watches_[of].line(now, number, text));
  return out;
}

informer_core::effects informer_core::closed(instant now, std::size_t of, std::uint64_t number,
                                             const api_answer& a) {
  effects out;
  take(out, of, watches_[of].closed(now, number, a));
  return out;
}

informer_core::effects informer_core::tick(instant now) {
  effects out;
  for (const auto of : {jobs_watch, pods_watch})
    take(out, of, watches_[of].tick(now));
  return out;
}

std::optional<instant> informer_core::next_wakeup() const {
  const auto one = watches_[jobs_watch].next_wakeup(), other = watches_[pods_watch].next_wakeup();
  return one && (!other || *one < *other) ? one : other;
}

void informer_core::take(effects& out, std::size_t of, watch_core::effects&& from) {
  for (auto& e : from)
    if (auto* c = std::get_if<watch_core::call>(&e)) {
      out.push_back(call{of, c->number, std::move(c->what)});
    } else if (auto* o = std::get_if<watch_core::open>(&e)) {
      out.push_back(open{of, o->number, std::move(o->what)});
    } else if (const auto* x = std::get_if<watch_core::cut>(&e)) {
      out.push_back(cut{of, x->number});
    } else if (const auto* is = std::get_if<watch_core::is>(&e)) {
      of == jobs_watch ? take_job(out, is->object) : take_pod(out, is->object);
    } else if (const auto* gone = std::get_if<watch_core::is_gone>(&e)) {
      of == jobs_watch ? job_gone(out, gone->key) : pod_gone(out, gone->uid);
    } else if (auto* n = std::get_if<watch_core::note>(&e)) {
      out.push_back(note{std::move(n->event)});
    } else if (!std::exchange(told_[of], true) && told_[jobs_watch] && told_[pods_watch]) {
      for (const auto& [route, job] : jobs_)
        out.push_back(tell_all_told{route});
    }
}

void informer_core::take_job(effects& out, const json::value& object) {
  const auto route =
      route_of(text(object, {"metadata", "namespace"}),
               label_of(text(object, {"metadata", "name"})), text(object, {"metadata", "uid"}));
  const auto key = key_of(object);
  const bool is_new = jobs_.count(route) == 0;
  auto& job = jobs_[route];
  job.key = key;
  job.json = json::serialize(object);
  routes_[key] = route;
  if (!is_new) {
    out.push_back(tell_job{route, job.json});
    return;
  }
  for (const auto& [uid, pod] : pods_)
    if (pod.route == route)
      job.pods.insert(uid);
  // It is told everything once it has begun.
  out.push_back(begin_job{route});
}

void informer_core::job_gone(effects& out, const std::string& key) {
  const auto found = routes_.find(key);
  if (found == routes_.end())
    return;
  out.push_back(end_job{found->second});
  const auto slash = key.find('/');
  out.push_back(note{{log::level::info,
                      "job_gone",
                      fmt::format("ElasticJob {} is deleted", key),
                      {{"job", key.substr(slash + 1)}, {"namespace", key.substr(0, slash)}}}});
  jobs_.erase(found->second);
  routes_.erase(found);
}

void informer_core::take_pod(effects& out, const json::value& object) {
  const auto uid = text(object, {"metadata", "uid"});
  auto& pod = pods_[uid];
  pod.route = route_of(text(object, {"metadata", "namespace"}), label(object, job_label),
                       controller_of(object));
  auto json = json::serialize(slim_pod(object));
  if (std::exchange(pod.json, json) == json)
    return;
  const auto job = jobs_.find(pod.route);
  if (job == jobs_.end())
    return;
  job->second.pods.insert(uid);
  out.push_back(tell_pod{pod.route, std::move(json)});
}

void informer_core::pod_gone(effects& out, const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end())
    return;
  if (const auto job = jobs_.find(found->second.route); job != jobs_.end()) {
    job->second.pods.erase(uid);
    out.push_back(tell_gone{found->second.route, uid});
  }
  pods_.erase(found);
}

informer_core::effects informer_core::job_begins(const std::string& route) {
  effects out;
  const auto job = jobs_.find(route);
  if (job == jobs_.end())
    return out;
  out.push_back(tell_job{route, job->second.json});
  for (const auto& uid : job->second.pods)
    out.push_back(tell_pod{route, pods_.at(uid).json});
  if (told_[jobs_watch] && told_[pods_watch])
    out.push_back(tell_all_told{route});
  return out;
}

std::string informer_core::in_words() const {
  if (!started_)
    return "waits until this operator leads";
  return fmt::format("follows {} jobs and {} pods{}", jobs_.size(), pods_.size(),
                     watches_[jobs_watch].is_behind() || watches_[pods_watch].is_behind()
                         ? ", and does not hear the API server right now"
                         : "");
}

} // namespace troupe::kube
