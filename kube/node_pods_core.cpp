#include "kube/node_pods_core.hpp"

#include "kube/job_objects.hpp"
#include "kube/objects.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;
using act = rank_pods::action::what;

} // namespace

node_pods_core::node_pods_core(options o) : options_(std::move(o)), random_(options_.seed) {}

// ---- what is told ----

node_pods_core::effects node_pods_core::want(instant now, std::uint32_t replicas,
                                             const json::value& pod_template) {
  effects out;
  if (over_)
    return out;
  wanted_ = true;
  const auto before = std::exchange(replicas_, std::min(replicas, limits::job_nodes_max));
  if (replicas > replicas_ && !std::exchange(too_many_told_, true))
    out.push_back(note{{log::level::error,
                        "too_many_nodes",
                        fmt::format("the job wants {} nodes: pods are made for {}, which is as "
                                    "many as a job may have",
                                    replicas, replicas_),
                        {}}});
  if (template_ != pod_template) {
    template_ = pod_template;
    template_refused_ = false;
    schedule_all(now);
  }
  for (std::uint32_t number = 0; number < replicas_; ++number) {
    auto& pods = rank_at(number).pods;
    pods.want(true);
    if (replicas_ != before)
      pods.try_again(now);
    schedule(number, now);
  }
  take_back(replicas_, now);
  begin(out, now);
  go_on(out, now);
  return out;
}

/// These ranks and those above are not wanted any more.
void node_pods_core::take_back(std::uint32_t from, instant now) {
  for (auto at = ranks_.lower_bound(from); at != ranks_.end(); ++at) {
    at->second.pods.want(false);
    schedule(at->first, now);
  }
}

node_pods_core::effects node_pods_core::end(instant now) {
  for (auto& [number, r] : ranks_)
    r.pods.end();
  return give_up(now);
}

node_pods_core::effects node_pods_core::give_up(instant now) {
  effects out;
  if (are_orphans_)
    for (auto& [number, r] : ranks_)
      r.pods.end();
  over_ = true;
  take_back(0, now);
  begin(out, now);
  go_on(out, now);
  return out;
}

bool node_pods_core::is_ours(const node_pod& pod) const {
  return pod.owner == options_.job.uid && pod.role == worker_role;
}

node_pods_core::effects node_pods_core::pod_is(instant now, const json::value& object) {
  effects out;
  const auto pod = read_node_pod(object);
  if (pod.uid.empty() || pod.role != worker_role)
    return out;
  // An earlier job of this name may have left pods, whose names are not free.
  next_id_ = std::max(next_id_, pod.id + 1);
  if (!is_ours(pod)) {
    are_orphans_ |= ranks_of_.count(pod.uid) != 0;
    return out;
  }
  if (!pod.rank || *pod.rank >= limits::job_nodes_max) {
    if (!std::exchange(odd_pod_told_, true))
      out.push_back(note{{log::level::warning,
                          "pod_without_rank",
                          fmt::format("the pod {} belongs to the job, but its label {} is no rank: "
                                      "it is left as it is",
                                      pod.name, rank_label),
                          {{"pod", pod.name}}}});
    return out;
  }
  ranks_of_[pod.uid] = *pod.rank;
  avoid_machine_of_departed(now, pod);
  tell(out, *pod.rank, rank_at(*pod.rank).pods.is(now, pod, true));
  schedule(*pod.rank, now);
  go_on(out, now);
  return out;
}

node_pods_core::effects node_pods_core::pod_gone(instant now, const std::string& key,
                                                 const std::string& uid) {
  effects out;
  const auto found = ranks_of_.find(uid);
  if (found != ranks_of_.end()) {
    const auto number = found->second;
    ranks_of_.erase(found);
    tell(out, number, rank_at(number).pods.gone(now, uid));
    schedule(number, now);
  } else {
    // One whose making is not answered yet: the answer will be late.
    const auto name = key.substr(key.rfind('/') + 1);
    for (const auto& [number, c] : calls_)
      if (c.what != verb::remove && c.name == name)
        tell(out, c.rank, rank_at(c.rank).pods.gone(now, uid));
  }
  go_on(out, now);
  return out;
}

node_pods_core::effects node_pods_core::all_told(instant now) {
  effects out;
  told_ = true;
  begin(out, now);
  for (auto& [number, r] : ranks_)
    for (const auto& uid : r.pods.all_told(now))
      ranks_of_.erase(uid);
  schedule_all(now);
  go_on(out, now);
  return out;
}

/// Once it is known which pods there are, and which there have to be.
void node_pods_core::begin(effects& out, instant now) {
  if (told_ && (wanted_ || over_))
    for (auto& [number, r] : ranks_)
      tell(out, number, r.pods.begin(now));
}

node_pods_core::effects node_pods_core::node_lost(instant now, const std::string& address,
                                                  const std::string& reason) {
  return node_goes(now, address, now + limits::machine_of_lost_node_avoided,
                   [&](rank_pods& pods) { return pods.lost(now, address, reason); });
}

/// Its machine may be good: one that the program has failed on is avoided for a while.
node_pods_core::effects node_pods_core::node_left(instant now, const std::string& address,
                                                  bool is_broken, const std::string& reason) {
  const auto how = is_broken ? pod_end::hardware : pod_end::failed;
  const auto until = now + limits::pod_of_left_node_ends + limits::machine_of_lost_node_avoided;
  return node_goes(now, address, is_broken ? std::nullopt : std::optional(until),
                   [&](rank_pods& pods) { return pods.left(now, address, how, reason); });
}

node_pods_core::effects node_pods_core::node_goes(instant now, const std::string& address,
                                                  std::optional<instant> avoided_until,
                                                  const std::function<bool(rank_pods&)>& goes) {
  effects out;
  bool is_known = false;
  for (auto& [number, r] : ranks_) {
    is_known |= r.pods.has_been_at(address);
    if (goes(r.pods)) {
      for (const auto& machine : r.pods.machines_at(address))
        avoided_.add(machine, avoided_until);
      schedule(number, now);
    }
  }
  departures_.erase(std::remove_if(departures_.begin(), departures_.end(),
                                   [&](const departure& d) { return now >= d.counts_until; }),
                    departures_.end());
  if (!is_known && departures_.size() < limits::job_nodes_max)
    // Never for good: the address may be given to another pod.
    departures_.push_back({address, now + limits::pod_told_within,
                           avoided_until.value_or(now + limits::machine_of_lost_node_avoided)});
  go_on(out, now);
  return out;
}

/// A kubelet tells a pod's address late: its node may have failed for good by then. The pod ends by
/// itself, so only its machine is of interest.
void node_pods_core::avoid_machine_of_departed(instant now, const node_pod& pod) {
  const auto& all = pod.addresses;
  departures_.erase(std::remove_if(departures_.begin(), departures_.end(),
                                   [&](const departure& d) {
                                     if (now >= d.counts_until)
                                       return true;
                                     if (std::find(all.begin(), all.end(), d.address) == all.end())
                                       return false;
                                     avoided_.add(pod.machine, d.avoided_until);
                                     return true;
                                   }),
                    departures_.end());
}

node_pods_core::effects node_pods_core::tick(instant now) {
  effects out;
  go_on(out, now);
  return out;
}

// ---- what is due ----

node_pods_core::rank& node_pods_core::rank_at(std::uint32_t number) {
  const auto found = ranks_.find(number);
  if (found != ranks_.end())
    return found->second;
  auto& r =
      ranks_
          .emplace(number,
                   rank{rank_pods({options_.restarts, options_.memory_max, options_.pending_limit}),
                        {},
                        false})
          .first->second;
  r.pods.want(!over_ && number < replicas_);
  if (told_ && (wanted_ || over_))
    r.pods.begin({}); // it has no pods yet, so nothing follows
  return r;
}

void node_pods_core::schedule(std::uint32_t number, instant at) {
  auto& r = ranks_.at(number);
  if (r.due)
    due_.erase({*r.due, number});
  r.due = at;
  due_.emplace(at, number);
}

void node_pods_core::schedule_all(instant at) {
  for (const auto& [number, r] : ranks_)
    schedule(number, at);
}

std::optional<instant> node_pods_core::next_wakeup() const {
  // An answer comes first.
  if (calls_.size() >= limits::pod_calls_max)
    return std::nullopt;
  std::optional<instant> next;
  if (!due_.empty())
    next = due_.begin()->first;
  if (!to_make_.empty())
    next = std::min(next.value_or(instant::max()), may_make({}));
  return next;
}

/// At the earliest, and not before `now`.
instant node_pods_core::may_make(instant now) const {
  return std::max(pause_of(verb::create).until, pace_.may_send(now, 1));
}

void node_pods_core::go_on(effects& out, instant now) {
  while (calls_.size() < limits::pod_calls_max && !due_.empty() && due_.begin()->first <= now) {
    const auto number = due_.begin()->second;
    due_.erase(due_.begin());
    ranks_.at(number).due.reset();
    step(out, now, number);
  }
  while (calls_.size() < limits::pod_calls_max && !to_make_.empty() && may_make(now) <= now)
    step(out, now, *to_make_.begin());
}

void node_pods_core::step(effects& out, instant now, std::uint32_t number) {
  to_make_.erase(number);
  auto& r = ranks_.at(number);
  if (r.is_asked)
    return;
  while (const auto w = r.pods.tell_wait(now))
    tell_wait(out, number, *w);
  const auto next = r.pods.next(now);
  switch (next.is) {
  case act::create:
    return create(out, now, number, r);
  case act::look:
    return ask(out, now, verb::look, number, next);
  case act::remove:
    return ask(out, now, verb::remove, number, next);
  case act::nothing:
    if (next.again)
      schedule(number, *next.again);
    else if (r.pods.is_empty() && (over_ || number >= replicas_))
      ranks_.erase(number);
  }
}

void node_pods_core::create(effects& out, instant now, std::uint32_t number, rank& r) {
  if (template_refused_)
    return; // until there is another one
  if (may_make(now) > now) {
    to_make_.insert(number);
    return;
  }
  pace_.sent(now, 1);
  if (!r.pods.has_chosen()) {
    const auto id = next_id_++;
    r.pods.choose(node_pod_name(options_.job.name, id), id);
  }
  node_pod_part part;
  part.rank = number;
  part.id = r.pods.chosen_id();
  part.nodes = replicas_;
  part.relaunches = r.pods.relaunches();
  part.restarts = r.pods.restarts();
  part.memory = r.pods.memory();
  part.avoided = r.pods.may_go_anywhere() ? avoided_.for_good() : avoided_.at(now);
  r.pods.may_be_there();
  send(out, {verb::create, number, node_pod_name(options_.job.name, part.id), ""},
       create_node_pod(options_.job, template_, part));
}

void node_pods_core::ask(effects& out, instant now, verb what, std::uint32_t number,
                         const rank_pods::action& a) {
  if (const auto until = pause_of(what).until; until > now)
    return schedule(number, until);
  const auto target = fmt::format("/api/v1/namespaces/{}/pods/{}", escaped(options_.job.name_space),
                                  escaped(a.name));
  const asked c{what, number, a.name, a.uid};
  if (what == verb::look)
    return send(out, c, {"GET", target, "", ""});
  json::object how{{"apiVersion", "v1"},
                   {"kind", "DeleteOptions"},
                   {"preconditions", json::object{{"uid", a.uid}}}};
  if (a.at_once)
    how["gracePeriodSeconds"] = 0;
  send(out, c, {"DELETE", target, "application/json", json::serialize(how)});
}

void node_pods_core::send(effects& out, asked c, api_request what) {
  ranks_.at(c.rank).is_asked = true;
  calls_[++last_number_] = std::move(c);
  out.push_back(call{last_number_, std::move(what)});
}

std::uint32_t node_pods_core::given_up() const {
  return static_cast<std::uint32_t>(
      std::count_if(ranks_.begin(), ranks_.lower_bound(replicas_),
                    [](const auto& each) { return each.second.pods.is_given_up(); }));
}

std::uint32_t node_pods_core::restarts_used() const {
  std::uint32_t most = 0;
  for (auto at = ranks_.begin(); at != ranks_.lower_bound(replicas_); ++at)
    most = std::max(most, at->second.pods.restarts());
  return most;
}

bool node_pods_core::is_busy() const {
  return !calls_.empty() || std::any_of(ranks_.begin(), ranks_.end(), [](const auto& each) {
    return !each.second.pods.is_settled();
  });
}

} // namespace troupe::kube
