#include "tests/kube/pods_world.hpp"

#include "kube/job_objects.hpp"
#include "kube/objects.hpp"
#include "runtime/base/invariant.hpp"
#include "tests/kube/kept_pods.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::testing {

namespace {

constexpr std::uint32_t replicas_most = 4;
constexpr std::uint32_t restarts = 3;

simulated_api_server::faults some_faults(random_source& random) {
  simulated_api_server::faults f;
  for (double* each : {&f.conflict, &f.too_old, &f.too_many, &f.broken, &f.unheard, &f.unanswered,
                       &f.event_late, &f.event_twice})
    *each = random.chance(0.5) ? random.unit() * 0.3 : 0;
  return f;
}

} // namespace

pods_world::pods_world(std::uint64_t seed, bool strict)
    : random_(seed), strict_(strict), server_(random_.next()) {
  server_.history_max = 5 + random_.below(50);
  server_.wrong = some_faults(random_);
  start();
  want(1 + static_cast<std::uint32_t>(random_.below(replicas_most)));
}

void pods_world::start() {
  core_.emplace(kube::node_pods_core::options{job_of_tests(), restarts, 30ull << 30,
                                              limits::pod_pending_max, random_.next()});
  watch_.emplace(kube::watch_core::options{pods_path, kube::pods_of("train"), "", random_.next()});
  perform(watch_->start(now_));
}

/// The master ends and is started again: it knows nothing of what it has asked for.
void pods_world::restart() {
  ++life_;
  ++count_.restarts;
  for (const auto& [number, w] : open_)
    server_.cut(w);
  open_.clear();
  given_up_.clear();
  done_.clear();
  start();
  want(replicas_);
}

void pods_world::want(std::uint32_t replicas) {
  for (auto r = std::min(replicas, replicas_); r < std::max(replicas, replicas_); ++r)
    done_.erase(r);
  if (replicas != replicas_)
    given_up_.clear();
  replicas_ = replicas;
  perform(core_->want(now_, replicas, template_of_tests()));
}

duration pods_world::some(duration most) {
  return std::chrono::duration_cast<duration>(most * random_.unit());
}

void pods_world::at(duration later, deed what) {
  agenda_.emplace(now_ + later, std::move(what));
}

// ---- requests and watches ----

/// Reaches the server after a while, and is answered after another one.
void pods_world::ask(const kube::api_request& what,
                     std::function<void(const kube::api_answer&)> answered) {
  const auto most = random_.chance(0.1) ? duration(10s) : duration(50ms);
  ++under_way_;
  at(some(most), [this, what, answered, most, life = life_] {
    --under_way_;
    const auto a = server_.answer(what);
    count_.made += what.method == "POST" && a.status == 201 ? 1 : 0;
    if (strict_)
      check_one_each();
    at(some(most), [this, a, answered, life] {
      if (life == life_)
        answered(a);
    });
  });
}

void pods_world::perform(const kube::node_pods_core::effects& effects) {
  std::size_t calls = 0;
  for (const auto& e : effects)
    if (const auto* c = std::get_if<kube::node_pods_core::call>(&e)) {
      invariant(++calls <= limits::pod_calls_max, "too many calls at once");
      ask(c->what, [this, number = c->number](const kube::api_answer& a) {
        perform(core_->answered(now_, number, a));
      });
    } else {
      note(e);
    }
}

void pods_world::note(const kube::node_pods_core::effect& e) {
  if (const auto* g = std::get_if<kube::node_pods_core::node_given_up>(&e)) {
    invariant(given_up_.insert(g->rank).second, "a rank is given up twice");
    ++count_.given_up;
  }
  const auto* n = std::get_if<kube::node_pods_core::note>(&e);
  if (n != nullptr && n->event.name == "pod_done") {
    done_.insert(static_cast<std::uint32_t>(std::get<std::int64_t>(n->event.fields[1].second)));
    ++count_.done;
  }
}

void pods_world::perform(const kube::watch_core::effects& effects) {
  for (const auto& e : effects)
    if (const auto* c = std::get_if<kube::watch_core::call>(&e)) {
      ++count_.lists;
      ask(c->what, [this, number = c->number](const kube::api_answer& a) {
        perform(watch_->answered(now_, number, a));
      });
    } else if (const auto* o = std::get_if<kube::watch_core::open>(&e)) {
      open(o->number, o->what);
    } else if (const auto* cut = std::get_if<kube::watch_core::cut>(&e)) {
      if (const auto found = open_.find(cut->number); found != open_.end()) {
        server_.cut(found->second);
        open_.erase(found);
      }
    } else if (const auto* is = std::get_if<kube::watch_core::is>(&e)) {
      perform(core_->pod_is(now_, is->object));
    } else if (const auto* gone = std::get_if<kube::watch_core::is_gone>(&e)) {
      perform(core_->pod_gone(now_, gone->key, gone->uid));
    } else if (std::holds_alternative<kube::watch_core::all_told>(e)) {
      perform(core_->all_told(now_));
    }
}

void pods_world::open(std::uint64_t number, const kube::api_request& what) {
  at(some(50ms), [this, number, what, life = life_] {
    if (life != life_)
      return;
    const auto o = server_.watch(what);
    if (o.answer.status == 200)
      open_[number] = o.watch;
    else
      perform(watch_->closed(now_, number, o.answer));
  });
}

/// Takes what the watches say, until they say nothing.
void pods_world::pump() {
  for (bool any = true; any;) {
    any = false;
    const auto all = open_;
    for (const auto& [number, w] : all) {
      if (const auto line = server_.line(w)) {
        any = true;
        perform(watch_->line(now_, number, *line));
      } else if (!server_.is_open(w) && open_.erase(number) != 0) {
        any = true;
        perform(watch_->closed(now_, number, {200, "", {}}));
      }
    }
  }
}

void pods_world::pass(duration d) {
  const auto until = now_ + d;
  for (;;) {
    pump();
    std::optional<instant> next;
    const auto consider = [&next](std::optional<instant> t) {
      if (t && (!next || *t < *next))
        next = t;
    };
    consider(agenda_.empty() ? std::nullopt : std::optional(agenda_.begin()->first));
    consider(core_->next_wakeup());
    consider(watch_->next_wakeup());
    consider(server_.next_line());
    if (!next || *next > until)
      break;
    now_ = std::max(now_, *next);
    server_.advance(now_);
    if (!agenda_.empty() && agenda_.begin()->first <= now_) {
      const auto what = std::move(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      what();
      continue;
    }
    perform(watch_->tick(now_));
    perform(core_->tick(now_));
    const auto again = core_->next_wakeup();
    invariant(!again || *again > now_, "it rings without pause");
  }
  now_ = until;
  server_.advance(now_);
}

// ---- what happens ----

void pods_world::strike() {
  const auto pods = server_.all(pods_path);
  switch (random_.below(pods.empty() ? 6 : 16)) {
  case 0:
    want(static_cast<std::uint32_t>(random_.below(replicas_most + 1)));
    break;
  case 1:
    server_.end_watches();
    break;
  case 2:
    server_.forget_history();
    break;
  case 3:
    if (random_.chance(0.3) && (!strict_ || under_way_ == 0))
      restart();
    break;
  case 4:
    if (!strict_)
      make_other();
    break;
  case 5:
    server_.bookmark();
    break;
  default: {
    const auto pod = kube::read_node_pod(*pods[random_.below(pods.size())]);
    strike_pod(pod.name, pod);
  }
  }
  if (strict_)
    check_one_each();
  pass(some(random_.chance(0.1) ? duration(2min) : duration(2s)));
}

void pods_world::strike_pod(const std::string& name, const kube::node_pod& pod) {
  static constexpr int codes[] = {0, 0, 1, 1, 1, 1, 2, 137, 143, 201};
  if (pod.is_terminating || random_.chance(0.05)) {
    ++count_.over;
    return kubelet_.terminated(name);
  }
  if (pod.phase == kube::pod_phase::ended)
    return;
  if (pod.phase == kube::pod_phase::pending && random_.chance(0.8)) {
    if (random_.chance(0.2))
      return kubelet_.unschedulable(name, "0/3 nodes are available");
    kubelet_.bind(name, "machine-" + std::to_string(random_.below(5)));
    return kubelet_.run(name, "10.0.0." + std::to_string(pod.id));
  }
  ++count_.over;
  switch (random_.below(12)) {
  case 0:
    return kubelet_.evict(name);
  case 1:
    return kubelet_.end(name, 137, "OOMKilled");
  case 2:
    kubelet_.disrupt(name);
    return kubelet_.end(name, 143);
  case 3: {
    const auto wrong = std::exchange(server_.wrong, {});
    server_.answer({"DELETE", kubelet_.path(name), "", ""}); // a user
    server_.wrong = wrong;
    return;
  }
  case 4:
    if (!pod.addresses.empty())
      perform(core_->node_lost(now_, pod.addresses[0], "no sign of life"));
    return;
  case 5:
    if (!pod.addresses.empty())
      perform(core_->node_left(now_, pod.addresses[0], random_.chance(0.3), "its restarts"));
    return;
  default:
    kubelet_.end(name, codes[random_.below(std::size(codes))]);
  }
}

/// Another master, which ends now, has asked for this earlier.
void pods_world::make_other() {
  kube::node_pod_part part;
  part.rank = static_cast<std::uint32_t>(random_.below(replicas_most));
  part.id = random_.chance(0.5) ? ++other_id_ : random_.below(10);
  auto job = job_of_tests();
  if (random_.chance(0.2))
    job.uid = "uid-of-an-earlier-job";
  server_.answer(kube::create_node_pod(job, template_of_tests(), part));
}

std::vector<kube::node_pod> pods_world::pods() const {
  std::vector<kube::node_pod> all;
  for (const auto* object : server_.all(pods_path))
    all.push_back(kube::read_node_pod(*object));
  return all;
}

/// What waits is run, and what is deleted goes.
void pods_world::kubelets_work() {
  for (const auto& pod : pods()) {
    if (pod.is_terminating) {
      kubelet_.terminated(pod.name);
    } else if (pod.phase == kube::pod_phase::pending) {
      kubelet_.bind(pod.name, "machine-0");
      kubelet_.run(pod.name, "10.0.0." + std::to_string(pod.id));
    }
  }
}

// ---- what must hold ----

/// Live pods of the job, by rank.
std::map<std::uint32_t, int> pods_world::live() const {
  std::map<std::uint32_t, int> all;
  for (const auto* object : server_.all(pods_path)) {
    const auto pod = kube::read_node_pod(*object);
    invariant(!pod.owner.empty() && pod.rank, "a pod without an owner or a rank");
    if (pod.owner == job_of_tests().uid && pod.phase != kube::pod_phase::ended &&
        !pod.is_terminating)
      ++all[*pod.rank];
  }
  return all;
}

void pods_world::check_one_each() const {
  for (const auto& [rank, count] : live())
    invariant(count <= 1, fmt::format("rank {} has {} live pods", rank, count));
}

void pods_world::let_be() {
  server_.wrong = {};
  const auto made = count_.made;
  for (int n = 0; n < 30; ++n) {
    kubelets_work();
    pass(n < 10 ? duration(1s) : duration(20s));
  }
  const auto all = live();
  for (std::uint32_t rank = 0; rank < replicas_; ++rank) {
    const auto found = all.find(rank);
    const int count = found == all.end() ? 0 : found->second;
    const int least = given_up_.count(rank) + done_.count(rank) == 0 ? 1 : 0;
    const int most = done_.count(rank) == 0 ? 1 : 0;
    invariant(count >= least && count <= most,
              fmt::format("rank {} of {} has {} live pods", rank, replicas_, count));
  }
  invariant(all.empty() || all.rbegin()->first < replicas_, "a rank beyond them has a live pod");
  invariant(count_.made - made <= 2 * replicas_most, "pods are made without an end");
}

void pods_world::end() {
  perform(core_->end(now_));
  pass(5s);
  server_.wrong = {};
  for (int n = 0; n < 20; ++n) {
    kubelets_work();
    pass(10s);
  }
  // What runs knows by itself that the job is over.
  for (const auto& pod : pods())
    if (pod.phase == kube::pod_phase::running)
      kubelet_.end(pod.name, 0);
  pass(10s);
  invariant(live().empty(), "the job is over and has a live pod");
  invariant(!core_->is_busy(), "the job is over and its pods are waited for");
}

} // namespace troupe::testing
