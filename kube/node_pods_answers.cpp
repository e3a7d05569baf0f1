// What the API server answers about the pods of a job's nodes, and what is told of them.

#include "kube/job_objects.hpp"
#include "kube/node_pods_core.hpp"
#include "kube/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

node_pods_core::effects node_pods_core::answered(instant now, std::uint64_t number,
                                                 const api_answer& a) {
  effects out;
  const auto found = calls_.find(number);
  if (found == calls_.end())
    return out;
  const auto c = std::move(found->second);
  calls_.erase(found);
  ranks_.at(c.rank).is_asked = false;
  if (is_passing(a) || a.status == 401) { // a token that was just replaced
    hold_on(now, c.what, a);
    // Too many requests are refused before they have any effect.
    if (c.what == verb::create && (a.status == 429 || a.status == 401))
      ranks_.at(c.rank).pods.is_not_there();
  } else if (c.what == verb::create) {
    create_answered(out, now, c, a);
  } else if (c.what == verb::look) {
    look_answered(out, now, c, a);
  } else {
    remove_answered(out, now, c, a);
  }
  schedule(c.rank, now);
  go_on(out, now);
  return out;
}

void node_pods_core::create_answered(effects& out, instant now, const asked& c,
                                     const api_answer& a) {
  auto& pods = ranks_.at(c.rank).pods;
  if (a.status == 200 || a.status == 201 || a.status == 202)
    return take_pod(out, now, c, a);
  if (a.status == 409)
    return; // it is looked for: it may be ours
  pods.is_not_there();
  if (a.status == 400 || a.status == 422)
    refuse_template(out, a);
  else
    tell_refused(out, now, c.what, a);
}

void node_pods_core::look_answered(effects& out, instant now, const asked& c, const api_answer& a) {
  auto& pods = ranks_.at(c.rank).pods;
  if (a.status == 200)
    return take_pod(out, now, c, a);
  if (a.status != 404)
    return tell_refused(out, now, c.what, a);
  answers_well(c.what);
  if (c.uid.empty())
    return pods.is_not_there();
  ranks_of_.erase(c.uid);
  tell(out, c.rank, pods.gone(now, c.uid));
}

/// One that was made, or was there under the name.
void node_pods_core::take_pod(effects& out, instant now, const asked& c, const api_answer& a) {
  auto& pods = ranks_.at(c.rank).pods;
  const auto object = parsed(a.body);
  const auto pod = object ? read_node_pod(*object) : node_pod{};
  if (pod.uid.empty())
    return hold_on(now, c.what, {0, "the answer is no pod", {}});
  answers_well(c.what);
  if (!c.uid.empty() && pod.uid != c.uid) {
    ranks_of_.erase(c.uid);
    return tell(out, c.rank, pods.gone(now, c.uid));
  }
  if (!is_ours(pod) || pod.rank != c.rank)
    return pods.name_is_taken();
  ranks_of_[pod.uid] = c.rank;
  tell(out, c.rank, pods.is(now, pod, false));
}

void node_pods_core::remove_answered(effects& out, instant now, const asked& c,
                                     const api_answer& a) {
  auto& pods = ranks_.at(c.rank).pods;
  if (a.status == 200 || a.status == 202) {
    answers_well(c.what);
    tell(out, c.rank, pods.removed(now, c.uid));
  } else if (a.status == 404) {
    answers_well(c.what);
    ranks_of_.erase(c.uid);
    tell(out, c.rank, pods.gone(now, c.uid));
  } else if (a.status == 409) {
    hold_on(now, c.what, a);
    pods.doubt(now, c.uid);
  } else {
    tell_refused(out, now, c.what, a);
  }
}

// ---- a server that does not do it ----

void node_pods_core::answers_well(verb what) {
  auto& p = pause_of(what);
  p.again.reset();
  p.refused_told = false;
}

/// Several may be under way: the first answer that says so begins the pause.
void node_pods_core::hold_on(instant now, verb what, const api_answer& a) {
  auto& p = pause_of(what);
  if (p.until <= now) {
    const auto wait = p.again.next();
    p.until = now + wait + std::chrono::duration_cast<duration>(wait * random_.unit() / 2);
  }
  if (a.retry_after)
    p.until =
        std::max(p.until, now + std::min<duration>(*a.retry_after, limits::mark_retry_after_most));
}

void node_pods_core::tell_refused(effects& out, instant now, verb what, const api_answer& a) {
  auto& p = pause_of(what);
  p.until = std::max(p.until, now + limits::pods_refused_again);
  if (std::exchange(p.refused_told, true))
    return;
  const auto* asked_for = what == verb::create ? "create" : what == verb::look ? "get" : "delete";
  out.push_back(note{
      {log::level::error,
       "pods_refused",
       fmt::format("the master cannot {} pods in the namespace {}: {}; it is tried again every "
                   "{} s. Its service account needs the verb {} for pods, and the namespace "
                   "a quota that is large enough",
                   asked_for, options_.job.name_space, in_words(a),
                   std::chrono::seconds(limits::pods_refused_again).count(), asked_for),
       {{"verb", std::string(asked_for)}}}});
}

void node_pods_core::refuse_template(effects& out, const api_answer& a) {
  if (std::exchange(template_refused_, true))
    return;
  out.push_back(note{{log::level::error,
                      "pod_template_refused",
                      fmt::format("no pod is made for the job's nodes until the template of its "
                                  "workers is changed: the API server refuses it: {}",
                                  in_words(a)),
                      {}}});
}

// ---- what is told ----

void node_pods_core::tell(effects& out, std::uint32_t number,
                          const std::optional<rank_pods::verdict>& v) {
  if (!v)
    return;
  if (v->end == pod_end::hardware) {
    avoided_.add(v->pod.machine, std::nullopt);
    out.push_back(machine_faulty{
        v->pod.machine, v->pod.addresses.empty() ? std::string() : v->pod.addresses[0], v->reason});
  }
  if (v->is == rank_pods::verdict::what::replaced)
    return tell_replaced(out, number, *v);
  if (v->is == rank_pods::verdict::what::done) {
    out.push_back(note{{log::level::info,
                        "pod_done",
                        fmt::format("the pod {} of rank {} has ended with 0", v->pod.name, number),
                        {{"pod", v->pod.name}, {"rank", std::int64_t{number}}}}});
    return;
  }
  out.push_back(note{
      {log::level::error,
       "node_given_up",
       fmt::format("rank {} gets no further pod: {} on {}: {}; the job goes on without it, as far "
                   "as --nnodes allows. kubectl logs {} has its last words",
                   number, v->pod.name, v->pod.machine.empty() ? "no machine" : v->pod.machine,
                   v->reason, v->pod.name),
       {{"pod", v->pod.name}, {"rank", std::int64_t{number}}, {"reason", v->reason}}}});
  out.push_back(node_given_up{number, v->reason});
}

void node_pods_core::tell_replaced(effects& out, std::uint32_t number,
                                   const rank_pods::verdict& v) {
  auto how = v.is_counted ? fmt::format("restart {} of {}", ranks_.at(number).pods.restarts(),
                                        options_.restarts)
                          : std::string("not counted");
  if (v.wait != duration())
    how += ", in " + troupe::in_words(v.wait);
  out.push_back(note{
      {log::level::notice,
       "pod_replaced",
       fmt::format("the pod {} of rank {} is replaced: {} ({})", v.pod.name, number, v.reason, how),
       {{"pod", v.pod.name}, {"rank", std::int64_t{number}}, {"reason", v.reason}}}});
}

void node_pods_core::tell_wait(effects& out, std::uint32_t number, const rank_pods::wait& w) {
  out.push_back(node_pending{number, w.reason});
  if (waits_told_.size() >= limits::pod_wait_reasons_max && waits_told_.count(w.kind) == 0)
    return;
  auto& told = waits_told_[(w.is_late ? "late " : "") + w.kind];
  if (++told > limits::pod_waits_told_max)
    return;
  const auto* more =
      told == limits::pod_waits_told_max ? "; further ranks that wait for this are not told" : "";
  if (w.is_late)
    out.push_back(note{
        {log::level::warning,
         "pod_pending_long",
         fmt::format("the pod of rank {} has not begun for {}: {}; the job goes on with {} nodes "
                     "if --nnodes allows it{}",
                     number, troupe::in_words(options_.pending_limit), w.reason, running(), more),
         {{"rank", std::int64_t{number}}, {"reason", w.reason}}}});
  else
    out.push_back(note{{log::level::notice,
                        "pod_pending",
                        fmt::format("the pod of rank {} waits: {}{}", number, w.reason, more),
                        {{"rank", std::int64_t{number}}, {"reason", w.reason}}}});
}

std::size_t node_pods_core::running() const {
  return static_cast<std::size_t>(std::count_if(ranks_.begin(), ranks_.end(), [](const auto& each) {
    return each.second.pods.is_running();
  }));
}

} // namespace troupe::kube
