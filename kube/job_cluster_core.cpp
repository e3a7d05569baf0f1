#include "kube/job_cluster_core.hpp"

#include "kube/job_objects.hpp"
#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

/// What a call is for. The first three are watches: of the job, of its pods, of ScalePlans. The
/// last is `of_own`.
constexpr std::size_t of_job = 0, of_pods = 1, of_marks = 3, of_nodes = 4;

/// "512Mi" in bytes; 0: it is none.
std::uint64_t bytes_in(const std::string& text) {
  std::size_t digits = 0;
  std::uint64_t value = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
    value = value * 10 + static_cast<std::uint64_t>(text[digits++] - '0');
  const auto unit = text.substr(digits);
  for (const auto& [name, power] : {std::pair{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}})
    if (unit == name)
      return value << power;
  return unit.empty() ? value : 0;
}

/// `kubectl delete --cascade=orphan`: a user wants what the job owns to stay.
bool keeps_its_pods(const elastic_job& deleted) {
  const auto& all = deleted.finalizers;
  return std::find(all.begin(), all.end(), "orphan") != all.end();
}

/// The pods of a gang say which one it is.
json::object with_gang(json::object pod, const std::string& gang, const std::string& job) {
  if (gang.empty() || gang == "none")
    return pod;
  const auto group = name_of_part("elasticjob", job, "");
  auto& meta = object_at(pod, "metadata");
  if (gang == "volcano") {
    object_at(meta, "annotations")["scheduling.k8s.io/group-name"] = group;
    if (auto& spec = object_at(pod, "spec"); !spec.contains("schedulerName"))
      spec["schedulerName"] = "volcano";
  } else {
    object_at(meta, "labels")["scheduling.x-k8s.io/pod-group"] = group;
  }
  return pod;
}

} // namespace

job_cluster_core::job_cluster_core(options o) : options_(std::move(o)) {
  if (options_.marks)
    marks_.emplace(machine_marks_core::options{options_.name_space, options_.own_pod, options_.job,
                                               *options_.marks, options_.seed});
  if (options_.elastic_job.empty())
    return;
  watches_.emplace_back(watch_core::options{elastic_collection(options_.name_space, "elasticjobs"),
                                            "", "metadata.name=" + options_.elastic_job,
                                            options_.seed + 1});
  watches_.emplace_back(watch_core::options{
      fmt::format("/api/v1/namespaces/{}/pods", options_.name_space),
      fmt::format("{},{}={}", pods_of(options_.elastic_job), role_label, worker_role), "",
      options_.seed + 2});
  watches_.emplace_back(watch_core::options{elastic_collection(options_.name_space, "scaleplans"),
                                            "", "", options_.seed + 3});
}

job_cluster_core::effects job_cluster_core::start(instant now) {
  effects out;
  for (std::size_t of = 0; of < watches_.size(); ++of)
    take_watch(out, now, of, watches_[of].start(now));
  return out;
}

job_cluster_core::effects job_cluster_core::mark_faulty(instant now, const node_name& node,
                                                        const std::string& address,
                                                        const std::string& reason) {
  effects out;
  if (marks_)
    take_marks(out, marks_->mark_faulty(now, node, address, reason));
  return out;
}

job_cluster_core::effects job_cluster_core::node_lost(instant now, const node_name&,
                                                      const std::string& address,
                                                      const std::string& reason) {
  effects out;
  if (pods_)
    take_pods(out, now, pods_->node_lost(now, address, reason));
  return out;
}

job_cluster_core::effects job_cluster_core::replace(instant now, const std::string& address,
                                                    bool is_broken, const std::string& reason) {
  effects out;
  if (pods_)
    take_pods(out, now, pods_->node_left(now, address, is_broken, reason));
  else if (leaving_.size() < limits::job_nodes_max)
    leaving_.push_back({address, reason, is_broken});
  return out;
}

job_cluster_core::effects job_cluster_core::want(instant now, std::uint32_t nodes) {
  effects out;
  wanted_ = nodes;
  tell_wanted(out, now);
  return out;
}

job_cluster_core::effects job_cluster_core::answered(instant now, std::size_t of,
                                                     std::uint64_t number, const api_answer& a) {
  effects out;
  if (of < watches_.size())
    take_watch(out, now, of, watches_[of].answered(now, number, a));
  else if (of == of_marks && marks_)
    take_marks(out, marks_->answered(now, number, a));
  else if (of == of_nodes && pods_)
    take_pods(out, now, pods_->answered(now, number, a));
  else if (of == of_own)
    plan_answered(out, now, number, a);
  return out;
}

job_cluster_core::effects job_cluster_core::line(instant now, std::size_t of, std::uint64_t number,
                                                 const std::string& text) {
  effects out;
  take_watch(out, now, of, watches_.at(of).line(now, number, text));
  return out;
}

job_cluster_core::effects job_cluster_core::closed(instant now, std::size_t of,
                                                   std::uint64_t number, const api_answer& a) {
  effects out;
  take_watch(out, now, of, watches_.at(of).closed(now, number, a));
  return out;
}

job_cluster_core::effects job_cluster_core::tick(instant now) {
  effects out;
  for (std::size_t of = 0; of < watches_.size(); ++of)
    take_watch(out, now, of, watches_[of].tick(now));
  if (marks_)
    take_marks(out, marks_->tick(now));
  if (pods_)
    take_pods(out, now, pods_->tick(now));
  ask_plans(out, now);
  return out;
}

job_cluster_core::effects job_cluster_core::end(instant now) {
  effects out;
  over_ = true;
  if (pods_)
    take_pods(out, now, pods_->end(now));
  return out;
}

job_cluster_core::effects job_cluster_core::ended() {
  effects out;
  for (std::size_t of = 0; of < watches_.size(); ++of)
    for (const auto& e : watches_[of].stop())
      if (const auto* c = std::get_if<watch_core::cut>(&e))
        out.push_back(cut{of, c->number});
  if (marks_)
    take_marks(out, marks_->ended());
  return out;
}

std::optional<instant> job_cluster_core::next_wakeup() const {
  std::optional<instant> at;
  const auto sooner = [&at](const std::optional<instant>& other) {
    if (other && (!at || *other < *at))
      at = other;
  };
  for (const auto& w : watches_)
    sooner(w.next_wakeup());
  if (marks_)
    sooner(marks_->next_wakeup());
  if (pods_)
    sooner(pods_->next_wakeup());
  sooner(plans_at_);
  return at;
}

bool job_cluster_core::is_busy() const {
  return (marks_ && marks_->is_busy()) || (over_ && pods_ && pods_->is_busy());
}

void job_cluster_core::take_watch(effects& out, instant now, std::size_t of,
                                  watch_core::effects&& from) {
  for (auto& e : from)
    if (auto* c = std::get_if<watch_core::call>(&e)) {
      out.push_back(call{of, c->number, std::move(c->what)});
    } else if (auto* o = std::get_if<watch_core::open>(&e)) {
      out.push_back(open{of, o->number, std::move(o->what)});
    } else if (const auto* x = std::get_if<watch_core::cut>(&e)) {
      out.push_back(cut{of, x->number});
    } else if (const auto* is = std::get_if<watch_core::is>(&e)) {
      of == of_job    ? job_is(out, now, is->object)
      : of == of_pods ? pod_is(out, now, is->object)
                      : plan_is(out, is->object);
    } else if (const auto* gone = std::get_if<watch_core::is_gone>(&e)) {
      if (of == of_job)
        give_pods_up(out, now, "its ElasticJob was deleted");
      else if (of == of_pods && pods_)
        take_pods(out, now, pods_->pod_gone(now, gone->key, gone->uid));
      else if (of == of_pods)
        pods_seen_.erase(gone->uid);
    } else if (auto* n = std::get_if<watch_core::note>(&e)) {
      out.push_back(note{std::move(n->event)});
    } else if (of == of_pods) {
      pods_told_ = true;
      if (pods_)
        take_pods(out, now, pods_->all_told(now));
    }
}

void job_cluster_core::take_marks(effects& out, machine_marks_core::effects&& from) {
  for (auto& e : from)
    if (auto* c = std::get_if<machine_marks_core::call>(&e))
      out.push_back(call{of_marks, c->number, std::move(c->what)});
    else
      out.push_back(note{std::move(std::get<machine_marks_core::note>(e).event)});
}

void job_cluster_core::take_pods(effects& out, instant now, node_pods_core::effects&& from) {
  for (auto& e : from)
    if (auto* c = std::get_if<node_pods_core::call>(&e))
      out.push_back(call{of_nodes, c->number, std::move(c->what)});
    else if (auto* n = std::get_if<node_pods_core::note>(&e))
      out.push_back(note{std::move(n->event)});
    else if (const auto* gone = std::get_if<node_pods_core::node_given_up>(&e))
      why_no_more_ = fmt::format("rank {} gets no further pod: {} (restartCounts {})", gone->rank,
                                 gone->reason, job_->restarts);
    else if (const auto* broken = std::get_if<node_pods_core::machine_faulty>(&e);
             broken != nullptr && marks_)
      take_marks(out, marks_->mark_faulty(now, broken->machine, broken->address, broken->reason));
  tell_supply(out);
}

/// Whenever it is another one. A job that is suspended, or over, is not short of nodes.
void job_cluster_core::tell_supply(effects& out) {
  if (over_ || !wanted_nodes_ || *wanted_nodes_ == 0)
    return;
  const auto given_up = pods_->given_up();
  supply is{*wanted_nodes_, *wanted_nodes_ - given_up, given_up == 0 ? std::string() : why_no_more_,
            fmt::format("restartCounts {}, the most of a rank: {}", job_->restarts,
                        pods_->restarts_used())};
  if (supply_told_ && supply_told_->wanted == is.wanted && supply_told_->nodes == is.nodes &&
      supply_told_->why_no_more == is.why_no_more && supply_told_->budget == is.budget)
    return;
  supply_told_ = is;
  out.push_back(std::move(is));
}

// ---- What the cluster says ----

void job_cluster_core::job_is(effects& out, instant now, const json::value& object) {
  const auto identity = elastic_job_identity(object);
  if (!options_.uid.empty() && identity.uid != options_.uid)
    return give_pods_up(out, now, "its ElasticJob was deleted, and another has its name");
  if (identity.is_being_deleted && keeps_its_pods(identity))
    return give_pods_up(out, now, "its ElasticJob was deleted without its pods, which train on",
                        &node_pods_core::end);
  if (identity.is_being_deleted)
    return give_pods_up(out, now, "its ElasticJob is being deleted");
  auto read = read_elastic_job(object);
  if (!read) {
    if (std::exchange(job_mistake_, read.error().what) != read.error().what)
      out.push_back(note{{log::level::warning,
                          "elastic_job_invalid",
                          fmt::format("ElasticJob {}: {}; the job goes on as it was",
                                      options_.elastic_job, read.error().what),
                          {{"job", options_.elastic_job}}}});
    return;
  }
  job_mistake_.clear();
  // What it was started with may be older than the job is now.
  const auto before = job_ ? job_->nodes : options_.nodes;
  job_ = std::move(*read);
  if (!(job_->nodes == before))
    out.push_back(scale{job_->nodes});
  if (!pods_)
    begin_pods(out, now);
  tell_wanted(out, now);
}

void job_cluster_core::begin_pods(effects& out, instant now) {
  node_pods_core::options o;
  o.job = {options_.name_space, job_->name, job_->uid,
           fmt::format("{}:{}", master_name(job_->name), master_port),
           token_secret_name(job_->name)};
  o.restarts = job_->restarts;
  o.memory_max = bytes_in(job_->memory_max);
  o.seed = options_.seed + 4;
  pods_.emplace(std::move(o));
  for (const auto& [uid, pod] : std::exchange(pods_seen_, {}))
    take_pods(out, now, pods_->pod_is(now, pod));
  if (pods_told_)
    take_pods(out, now, pods_->all_told(now));
  for (const auto& each : std::exchange(leaving_, {}))
    take_pods(out, now, pods_->node_left(now, each.address, each.is_broken, each.reason));
}

/// A job that is suspended has no pods; its master is removed by the operator.
void job_cluster_core::tell_wanted(effects& out, instant now) {
  if (!pods_ || !job_ || over_)
    return;
  const auto nodes = job_->is_suspended ? 0 : wanted_.value_or(job_->nodes.max);
  wanted_nodes_ = nodes;
  take_pods(out, now,
            pods_->want(now, nodes, with_gang(job_->pod_template, options_.gang, job_->name)));
}

void job_cluster_core::pod_is(effects& out, instant now, const json::value& object) {
  if (pods_)
    take_pods(out, now, pods_->pod_is(now, object));
  else
    pods_seen_[text(object, {"metadata", "uid"})] = object;
}

void job_cluster_core::give_pods_up(effects& out, instant now, const std::string& why,
                                    give_up how) {
  if (std::exchange(over_, true))
    return;
  out.push_back(note{{log::level::warning,
                      "elastic_job_gone",
                      fmt::format("{}: no pod is made for it any more", why),
                      {{"job", options_.elastic_job}}}});
  if (pods_)
    take_pods(out, now, (*pods_.*how)(now));
}

} // namespace troupe::kube
