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
  /// The job is to have worlds of such sizes from now on.
  struct scale {
    node_range nodes;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<call, open, cut, scale, note>;
  using effects = std::vector<effect>;

  explicit job_cluster_core(options o);

  effects start(instant now);
  effects mark_faulty(instant now, const node_name& node, const std::string& address,
                      const std::string& reason);
  effects node_lost(instant now, const node_name& node, const std::string& address,
                    const std::string& reason);
  /// So many nodes are wanted at most.
  effects want(instant now, std::uint32_t nodes);
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
  void take_watch(effects& out, instant now, std::size_t of, watch_core::effects&& from);
  void take_marks(effects& out, machine_marks_core::effects&& from);
  void take_pods(effects& out, instant now, node_pods_core::effects&& from);
  void job_is(effects& out, instant now, const boost::json::value& object);
  void pod_is(effects& out, instant now, const boost::json::value& object);
  void plan_is(effects& out, const boost::json::value& object);
  void begin_pods(effects& out, instant now);
  void tell_wanted(effects& out, instant now);
  void give_pods_up(effects& out, instant now, const std::string& why);

  options options_;
  std::optional<machine_marks_core> marks_;
  std::optional<node_pods_core> pods_;
  std::vector<watch_core> watches_; ///< of the job, its pods, and ScalePlans
  std::optional<elastic_job> job_;
  std::string job_mistake_; ///< that was told
  std::optional<std::uint32_t> wanted_;
  bool over_ = false;
  /// What came before the first pod could be made.
  std::map<std::string, boost::json::value> pods_seen_;
  bool pods_told_ = false;
  std::map<std::string, std::string> plans_done_; ///< by uid: the version that was taken
  std::uint64_t last_number_ = 0;
};

} // namespace troupe::kube
