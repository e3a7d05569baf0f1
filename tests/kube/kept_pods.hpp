#pragma once

#include "kube/node_pods_core.hpp"
#include "kube/objects.hpp"
#include "tests/kube/simulated_kubelet.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

inline const std::string pods_path = "/api/v1/namespaces/jobs/pods";

inline kube::node_pods_job job_of_tests() {
  return {"jobs", "train", "uid-of-job", "elasticjob-train-dlrover-master:50001", "train-token"};
}

inline boost::json::value template_of_tests() {
  return boost::json::parse(
      R"({"metadata":{"labels":{"team":"vision"}},
          "spec":{"restartPolicy":"Always","containers":[
            {"name":"main","image":"train:1","env":[{"name":"NODE_NUM","value":"7"}],
             "resources":{"limits":{"memory":"16Gi","cpu":8}}}]}})");
}

/// A node_pods_core whose calls are answered at once, and which is told all changes at once.
class kept_pods {
 public:
  simulated_api_server server;
  simulated_kubelet kubelet{server, "jobs"};
  kube::node_pods_core core;
  instant now{};
  std::vector<log::event> told;
  std::vector<kube::node_pods_core::node_pending> pending;
  std::vector<kube::node_pods_core::node_given_up> given_up;
  std::vector<kube::node_pods_core::machine_faulty> faulty;
  std::vector<std::string> asked; ///< "POST", "GET name", "DELETE name"

  explicit kept_pods(kube::node_pods_core::options o = {job_of_tests()}) : core(std::move(o)) {}
  kept_pods(const kept_pods&) = delete; // the kubelet is of this server
  kept_pods& operator=(const kept_pods&) = delete;

  void start(std::uint32_t replicas) {
    perform(core.all_told(now));
    perform(core.want(now, replicas, template_of_tests()));
    sync();
  }
  void perform(const kube::node_pods_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* n = std::get_if<kube::node_pods_core::note>(&e)) {
        told.push_back(n->event);
      } else if (const auto* p = std::get_if<kube::node_pods_core::node_pending>(&e)) {
        pending.push_back(*p);
      } else if (const auto* g = std::get_if<kube::node_pods_core::node_given_up>(&e)) {
        given_up.push_back(*g);
      } else if (const auto* f = std::get_if<kube::node_pods_core::machine_faulty>(&e)) {
        faulty.push_back(*f);
      } else {
        const auto& c = std::get<kube::node_pods_core::call>(e);
        const auto& target = c.what.target;
        asked.push_back(c.what.method == "POST"
                            ? "POST"
                            : c.what.method + " " + target.substr(target.rfind('/') + 1));
        perform(core.answered(now, c.number, server.answer(c.what)));
      }
  }
  /// Tells what has changed, as a watch does.
  void sync() {
    for (bool changed = true; changed;) {
      changed = false;
      const auto before = std::exchange(known_, {});
      for (const auto* pod : server.all(pods_path))
        known_[kube::key_of(*pod)] = *pod;
      for (const auto& [key, pod] : before)
        if (known_.count(key) == 0 || uid(known_.at(key)) != uid(pod)) {
          changed = true;
          perform(core.pod_gone(now, key, uid(pod)));
        }
      const auto is = known_;
      for (const auto& [key, pod] : is)
        if (before.count(key) == 0 || before.at(key) != pod) {
          changed = true;
          perform(core.pod_is(now, pod));
        }
    }
  }
  /// Wakes it as often as it wants to be.
  void pass(duration d) {
    const auto until = now + d;
    for (auto at = core.next_wakeup(); at && *at <= until; at = core.next_wakeup()) {
      invariant_later(*at);
      now = std::max(now, *at);
      server.advance(now);
      perform(core.tick(now));
      sync();
    }
    now = until;
    server.advance(now);
  }
  void run_all() {
    for (const auto& name : names())
      if (kube::text(*server.find(kubelet.path(name)), {"status", "phase"}) == "Pending") {
        const auto number = name.substr(name.rfind('-') + 1);
        kubelet.bind(name, "machine-" + number);
        kubelet.run(name, "10.0.0." + number);
      }
    sync();
  }
  void end(const std::string& pod, int code, const std::string& reason = "") {
    kubelet.end("train-edljob-worker-" + pod, code, reason);
    sync();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto* pod : server.all(pods_path))
      all.push_back(kube::text(*pod, {"metadata", "name"}));
    return all;
  }
  /// Of those that have not ended and are not being deleted: "rank:id", in the order of names.
  std::string live() const {
    std::string all;
    for (const auto* object : server.all(pods_path)) {
      const auto pod = kube::read_node_pod(*object);
      if (pod.phase != kube::pod_phase::ended && !pod.is_terminating)
        all += (all.empty() ? "" : " ") + std::to_string(pod.rank.value_or(99)) + ":" +
               std::to_string(pod.id);
    }
    return all;
  }
  boost::json::value pod(const std::string& id) const {
    const auto* found = server.find(kubelet.path("train-edljob-worker-" + id));
    return found != nullptr ? *found : boost::json::value();
  }
  std::vector<std::string> told_names() const {
    std::vector<std::string> all;
    for (const auto& e : told)
      all.push_back(e.name);
    return all;
  }
  std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), what));
  }
  bool slept_well() const { return slept_well_; }

 private:
  static std::string uid(const boost::json::value& pod) {
    return kube::text(pod, {"metadata", "uid"});
  }
  /// A core that wants to be woken for what it does not do would never let time pass.
  void invariant_later(instant at) {
    slept_well_ = slept_well_ && (at > last_wakeup_ || at > now);
    last_wakeup_ = at;
  }

  std::map<std::string, boost::json::value> known_;
  instant last_wakeup_{instant::min()};
  bool slept_well_ = true;
};

/// All that is wanted runs.
struct running : kept_pods {
  explicit running(std::uint32_t replicas, kube::node_pods_core::options o = {job_of_tests()})
      : kept_pods(std::move(o)) {
    start(replicas);
    run_all();
  }
};

inline bool told(const kept_pods& p, const std::string& words) {
  return std::any_of(p.told.begin(), p.told.end(),
                     [&](const log::event& e) { return e.text.find(words) != std::string::npos; });
}

inline kube::api_answer with(unsigned status, const std::string& message) {
  return {status, R"({"message":")" + message + "\"}", {}};
}

/// A pod of the job as another master would make it.
inline void make(kept_pods& p, std::uint32_t rank, std::uint64_t id, std::uint32_t relaunches = 0,
                 const kube::node_pods_job& job = job_of_tests()) {
  kube::node_pod_part part;
  part.rank = rank;
  part.id = id;
  part.relaunches = relaunches;
  part.restarts = relaunches;
  p.server.answer(kube::create_node_pod(job, template_of_tests(), part));
}

} // namespace troupe::testing
