#pragma once

#include "kube/api.hpp"
#include "kube/elastic_job.hpp"
#include "kube/machine_marks_core.hpp"
#include "kube/node_pods_core.hpp"
#include "kube/watch_core.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// What a master does in Kubernetes: marks the machines under broken nodes, and, where its job is
/// an ElasticJob, keeps the pods of its nodes and follows what the job and its ScalePlans say.
///
///     ElasticJob, ScalePlan ──▶ scale ──▶ (the planner) ──▶ want() ──▶ pods
///
/// The planner alone knows how many nodes are wanted: a person may have scaled the job by a shell.
class job_cluster_core {
 public:
  struct options {
    std::string name_space, own_pod, job;
    std::optional<machine_mark> marks;
    std::string elastic_job; ///< the name of the job's ElasticJob; empty: it has none
    node_range nodes;        ///< as the master was started with
    std::string gang; ///< "volcano", "scheduler-plugins": the pods belong to the job's PodGroup
    std::uint64_t seed = 0;
    std::string uid = {}; ///< the identity of the ElasticJob; empty: it is not known
  };
  /// Answered by answered() under the same two numbers, in any case.
  struct call {
    std::size_t of = 0;
    std::uint64_t number = 0;
    api_request what;
  };
  /// A watch: its lines come by line(), its end by closed().
  struct open {
    std::size_t of = 0;
    std::uint64_t number = 0;
    api_request what;
  };
  struct cut {
    std::size_t of = 0;
    std::uint64_t number = 0;
  };
  /// So many nodes there are, or may still come; where that is fewer than are wanted, why.
  struct supply {
    std::uint32_t wanted = 0, nodes = 0;
    std::string why_no_more;
    std::string budget; ///< how often a pod is made anew, in words
  };
  /// The job is to have worlds of such sizes from now on.
  struct scale {
    node_range nodes;
    std::string plan = {}; ///< the uid of the ScalePlan that says so
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<call, open, cut, scale, supply, note>;
  using effects = std::vector<effect>;

  explicit job_cluster_core(options o);

  effects start(instant now);
  effects mark_faulty(instant now, const node_name& node, const std::string& address,
                      const std::string& reason);
  effects node_lost(instant now, const node_name& node, const std::string& address,
                    const std::string& reason);
  /// The master has given the node up for good: another machine is wanted in its place.
  effects replace(instant now, const std::string& address, bool is_broken,
                  const std::string& reason);
  /// So many nodes are wanted at most.
  effects want(instant now, std::uint32_t nodes);
  /// What the planner has made of the plan of this uid: it is on record, or was refused.
  effects plan_taken(instant now, const std::string& uid, bool accepted, const std::string& why);
  effects answered(instant now, std::size_t of, std::uint64_t number, const api_answer& a);
  effects line(instant now, std::size_t of, std::uint64_t number, const std::string& text);
  effects closed(instant now, std::size_t of, std::uint64_t number, const api_answer& a);
  effects tick(instant now);
  /// The job is over.
  effects end(instant now);
  /// Nothing is called any more.
  effects ended();
  std::optional<instant> next_wakeup() const;
  bool is_busy() const;

 private:
  static constexpr std::size_t of_own = 5; ///< what a call is for: the status of a plan

  void take_watch(effects& out, instant now, std::size_t of, watch_core::effects&& from);
  void take_marks(effects& out, machine_marks_core::effects&& from);
  void take_pods(effects& out, instant now, node_pods_core::effects&& from);
  void job_is(effects& out, instant now, const boost::json::value& object);
  void pod_is(effects& out, instant now, const boost::json::value& object);
  void plan_is(effects& out, const boost::json::value& object);
  void plan_answered(effects& out, instant now, std::uint64_t number, const api_answer& a);
  void end_plan(const std::string& uid, bool succeeded);
  void ask_plans(effects& out, instant now);
  void begin_pods(effects& out, instant now);
  void tell_wanted(effects& out, instant now);
  void tell_supply(effects& out);
  using give_up = node_pods_core::effects (node_pods_core::*)(instant);
  void give_pods_up(effects& out, instant now, const std::string& why,
                    give_up how = &node_pods_core::give_up);

  options options_;
  std::optional<machine_marks_core> marks_;
  std::optional<node_pods_core> pods_;
  /// Nodes that were given up before the first pod could be known.
  struct leaving {
    std::string address, reason;
    bool is_broken = false;
  };
  std::vector<leaving> leaving_;
  std::vector<watch_core> watches_; ///< of the job, its pods, and ScalePlans
  std::optional<elastic_job> job_;
  std::string job_mistake_; ///< that was told
  std::optional<std::uint32_t> wanted_;
  std::optional<std::uint32_t> wanted_nodes_; ///< of the pods
  std::string why_no_more_;                   ///< of the last rank that was given up
  std::optional<supply> supply_told_;
  bool over_ = false;
  /// What came before the first pod could be made.
  std::map<std::string, boost::json::value> pods_seen_;
  bool pods_told_ = false;
  std::map<std::string, std::string> plans_; ///< that were found: names by uid
  /// That a plan is done, as the server is to know it: those that are asked for, and those that are
  /// to be asked for again.
  std::map<std::uint64_t, api_request> plans_asked_;
  std::deque<api_request> plans_due_;
  std::optional<instant> plans_at_;
  bool plans_refused_told_ = false;
  std::uint64_t last_number_ = 0;
};

} // namespace troupe::kube
