#pragma once

#include "kube/api.hpp"
#include "kube/limits.hpp"
#include "kube/rank_pods.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/rate_limiter.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::kube {

/// Keeps the pods of a job's nodes: one for each rank of those that are wanted.
///
///     want(replicas, template) ┐
///     the watch of the pods    ├→ one pod for each rank → create, look, delete
///     the answers              ┘
///
/// What follows from the end of a pod:
///
///     0                                  the rank is done
///     2: the command line is wrong       given up
///     deleted, evicted, preempted, lost  replaced
///     out of memory                      replaced with more, or counted
///     201, 202, 14: hardware             the machine is told as faulty; counted
///     the job has given its node up      counted, and for its hardware as those
///     all else                           counted
///
/// What is counted is replaced as often as the job allows, and is then given up, without the other
/// ranks. Nothing is made or deleted before a list has told which pods there are, so a master that
/// was started again takes over those of its earlier life.
class node_pods_core {
 public:
  struct options {
    node_pods_job job;
    std::uint32_t restarts = 3;   ///< of each rank
    std::uint64_t memory_max = 0; ///< bytes to which out of memory may raise it; 0: it may not
    duration pending_limit = limits::pod_pending_max;
    std::uint64_t seed = 0; ///< for jitter
  };

  /// Answered by answered() under the same number, in any case.
  struct call {
    std::uint64_t number = 0;
    api_request what;
  };
  struct note {
    log::event event;
  };
  /// Its pod does not begin.
  struct node_pending {
    std::uint32_t rank = 0;
    std::string reason;
  };
  /// It gets no further pod.
  struct node_given_up {
    std::uint32_t rank = 0;
    std::string reason;
  };
  /// Told before the pod that was there is replaced, so that it is marked first.
  struct machine_faulty {
    std::string machine, address, reason;
  };
  using effect = std::variant<call, note, node_pending, node_given_up, machine_faulty>;
  using effects = std::vector<effect>;

  explicit node_pods_core(options o);

  /// As many pods as `replicas`, which may change; a template that changes is that of later pods.
  effects want(instant now, std::uint32_t replicas, const boost::json::value& pod_template);
  effects pod_is(instant now, const boost::json::value& object);
  effects pod_gone(instant now, const std::string& key, const std::string& uid);
  /// What the watch has told so far is all that there was.
  effects all_told(instant now);
  /// The master has lost a node, whose pod may not know it yet. `address`: as other nodes reach it.
  effects node_lost(instant now, const std::string& address, const std::string& reason);
  /// The master has given a node up for good, and its pod ends by itself.
  effects node_left(instant now, const std::string& address, bool is_broken,
                    const std::string& reason);
  effects answered(instant now, std::uint64_t number, const api_answer& a);
  effects tick(instant now);
  /// The job is over: what does not run yet is deleted. What runs ends by itself; it stays, as what
  /// has ended does, for its logs.
  effects end(instant now);
  /// Its ElasticJob is gone: what has not ended is deleted, unless the cluster has taken the job
  /// away as the pods' owner (`kubectl delete --cascade=orphan`).
  effects give_up(instant now);
  std::optional<instant> next_wakeup() const;
  /// After either: pods are being deleted still.
  bool is_busy() const;
  /// Of the ranks that are wanted: those that get no further pod, and the most restarts of one.
  std::uint32_t given_up() const;
  std::uint32_t restarts_used() const;

 private:
  enum class verb : std::uint8_t { create, look, remove };
  struct asked {
    verb what = verb::create;
    std::uint32_t rank = 0;
    std::string name, uid;
  };
  /// A verb that the server does not do for now.
  struct pause {
    instant until{};
    back_off again{limits::pod_again_first, limits::pod_again_most};
    bool refused_told = false;
  };
  /// A node that was given up, or lost, by an address that no pod has yet.
  struct departure {
    std::string address;
    instant counts_until{}, avoided_until{};
  };
  struct rank {
    rank_pods pods;
    std::optional<instant> due;
    bool is_asked = false; ///< one call at a time
  };

  void begin(effects& out, instant now);
  rank& rank_at(std::uint32_t number);
  void take_back(std::uint32_t from, instant now);
  void schedule(std::uint32_t number, instant at);
  void schedule_all(instant at);
  void go_on(effects& out, instant now);
  void step(effects& out, instant now, std::uint32_t number);
  instant may_make(instant now) const;
  void create(effects& out, instant now, std::uint32_t number, rank& r);
  void ask(effects& out, instant now, verb what, std::uint32_t number, const rank_pods::action& a);
  void send(effects& out, asked c, api_request what);
  void create_answered(effects& out, instant now, const asked& c, const api_answer& a);
  void look_answered(effects& out, instant now, const asked& c, const api_answer& a);
  void remove_answered(effects& out, instant now, const asked& c, const api_answer& a);
  void take_pod(effects& out, instant now, const asked& c, const api_answer& a);
  pause& pause_of(verb what) { return pauses_[static_cast<std::size_t>(what)]; }
  const pause& pause_of(verb what) const { return pauses_[static_cast<std::size_t>(what)]; }
  void answers_well(verb what);
  void hold_on(instant now, verb what, const api_answer& a);
  void tell_refused(effects& out, instant now, verb what, const api_answer& a);
  void refuse_template(effects& out, const api_answer& a);
  bool is_ours(const node_pod& pod) const;
  void avoid_machine_of_departed(instant now, const node_pod& pod);

  void tell(effects& out, std::uint32_t number, const std::optional<rank_pods::verdict>& v);
  void tell_replaced(effects& out, std::uint32_t number, const rank_pods::verdict& v);
  void tell_wait(effects& out, std::uint32_t number, const rank_pods::wait& w);
  std::size_t running() const;
  effects node_goes(instant now, const std::string& address, std::optional<instant> avoided_until,
                    const std::function<bool(rank_pods&)>& goes);

  options options_;
  boost::json::value template_;
  std::uint32_t replicas_ = 0;
  bool told_ = false;   ///< by a list, which pods there are
  bool wanted_ = false; ///< it was told how many
  bool over_ = false;
  std::map<std::uint32_t, rank> ranks_;
  std::map<std::string, std::uint32_t> ranks_of_; ///< by uid of a pod
  std::set<std::pair<instant, std::uint32_t>> due_;
  std::set<std::uint32_t> to_make_; ///< ranks whose pods wait for the pace, or for the server
  std::map<std::uint64_t, asked> calls_;
  std::uint64_t last_number_ = 0;
  std::uint64_t next_id_ = 0;
  std::array<pause, 3> pauses_; ///< by verb
  rate_limiter pace_{limits::pods_made_per_second, limits::pods_made_at_once};
  avoided_machines avoided_;
  std::vector<departure> departures_; ///< of nodes whose pods are not told yet
  bool are_orphans_ = false;          ///< a pod has lost the job as its owner
  bool template_refused_ = false;
  bool odd_pod_told_ = false;
  bool too_many_told_ = false;
  std::map<std::string, std::size_t> waits_told_; ///< by reason
  random_source random_;
};

} // namespace troupe::kube
