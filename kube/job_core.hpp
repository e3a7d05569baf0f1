#pragma once

#include "kube/api.hpp"
#include "kube/elastic_job.hpp"
#include "kube/job_objects.hpp"
#include "kube/job_status.hpp"
#include "kube/job_token.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// Makes what one ElasticJob needs, keeps its master's pod there, and writes its status.
///
/// It compares what should be with what is, and takes the next step of the difference; one request
/// is under way at a time. What it has to know it reads from the API server, so that it may begin
/// anew at any moment, in another operator as well:
///
///     account, rights, service, … → token → master's pod → (its end) → the next one, or: job over
///
/// What was made once may be gone by the time that it is needed: the cluster's collector removes
/// what a deleted job of the same name has left, late. So all of it is made sure of again before
/// each pod of a master, and while one that has a machine does not begin.
///
/// The pods of the nodes are the master's business: without an operator they are replaced as well.
class job_core {
 public:
  /// Reasons of the condition Blocked that no request mends.
  static constexpr auto pod_pending = "PodPending", failed_start = "MasterCannotStart";

  struct options {
    operator_policy policy;
    std::string token; ///< for the job, unless it has one; secret
    std::uint64_t seed = 0;
  };
  /// Answered by answered() under the same number, in any case.
  struct call {
    std::uint64_t number = 0;
    api_request what;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<call, note>;
  using effects = std::vector<effect>;

  explicit job_core(options o);

  struct moment {
    instant at;
    std::string utc; ///< the time of day, RFC 3339
  };

  effects job_is(const moment& now, const boost::json::value& object);
  effects pod_is(const moment& now, const boost::json::value& pod);
  effects pod_gone(const moment& now, const std::string& uid);
  /// All pods that it has have been told.
  effects all_told(const moment& now);
  effects answered(const moment& now, std::uint64_t number, const api_answer& a);
  effects tick(const moment& now);
  std::optional<instant> next_wakeup() const { return wakeup_; }
  std::string in_words() const;

 private:
  enum class step : std::uint8_t {
    hold,
    need,
    token,
    topology,
    master,
    look,
    remove_pod,
    remove_binding,
    let_go,
    remove_job,
    status,
    event
  };
  using next_step = std::optional<std::pair<step, api_request>>;
  struct told_event {
    std::string reason, message, utc;
    bool is_warning = false;
  };

  void go_on(effects& out, const moment& now);
  void plan_wakeup(const moment& now);
  /// The next request; none: nothing is to be done now.
  next_step next(const moment& now);
  next_step next_of_deleted() const;
  next_step next_of_over(const moment& now);
  /// Each is asked once, and again where the watch does not tell of it.
  bool may_remove(const moment& now, const job_pod& p) const;
  next_step remove(const moment& now, const job_pod& p);
  next_step next_of_live(const moment& now);
  next_step next_of_suspended(const moment& now);
  const job_pod* ended_master_too_many(const moment& now) const;
  master_found_by how_master_is_found() const;
  next_step next_of_master(const moment& now);
  void judge(effects& out, const moment& now);
  void judge_master(effects& out, const moment& now);
  void judge_nodes(effects& out, const moment& now);
  void judge_waits(const moment& now);
  void judge_failed_start(effects& out, const moment& now, const job_pod* newest);
  void need_again();
  void enter(effects& out, const moment& now, const std::string& phase, const std::string& reason,
             const std::string& message);
  void done(step s, const api_answer& a, const moment& now);
  bool is_settled_by(effects& out, const moment& now, step s, const api_answer& a);
  void refused(effects& out, const moment& now, step s, const api_answer& a);
  bool is_blocked_by(const char* reason) const { return trouble_.rfind(reason, 0) == 0; }
  void status_refused(effects& out, const moment& now, const api_answer& a);
  void blocked(effects& out, const moment& now, const std::string& reason,
               const std::string& message);
  void rest(const moment& now, const api_answer& a);
  void take_pod(const moment& now, const boost::json::value& object);
  void take_looked_at(const api_answer& a, const moment& now);
  void say(const moment& now, const std::string& reason, const std::string& message,
           bool is_warning);
  const job_pod* newest_master() const;
  api_request change_finalizers(const char* op) const;
  api_request event_of(const told_event& e) const;

  options options_;
  elastic_job job_;
  bool is_known_ = false;
  std::optional<std::string> mistake_; ///< in the spec
  std::string said_;                   ///< by people, as it was last read
  bool pods_told_ = false;
  std::map<std::string, job_pod> pods_; ///< by uid
  std::vector<api_request> needs_;
  std::size_t needs_done_ = 0;
  job_token token_;
  std::optional<instant> needed_again_at_; ///< unless what has a machine has begun by then
  /// Pods that are asked to go and are not told as going yet, by uid, and since when.
  std::map<std::string, instant> removing_;
  std::string removed_last_;     ///< uid
  std::optional<bool> topology_; ///< whether its ConfigMap has one
  bool binding_removed_ = false;
  std::uint32_t attempt_ = 0; ///< of the master's next pod
  std::string created_;       ///< the master's pod that was made and is not told yet
  std::optional<instant> created_until_, next_master_at_, runs_since_, over_at_;
  std::optional<instant> restarting_at_; ///< unless a pod of a node runs by then
  job_status status_;
  std::string status_written_;
  std::optional<instant> status_at_; ///< when it may be written again
  std::deque<told_event> events_;

  std::uint64_t last_number_ = 0;
  std::optional<std::pair<std::uint64_t, step>> asked_;
  std::optional<instant> again_at_, wakeup_;
  /// What makes and removes rests until then; status and events do not.
  std::optional<instant> refused_until_;
  std::string trouble_; ///< that was told
  back_off again_, master_again_, refused_again_;
  random_source random_;
};

} // namespace troupe::kube
