#pragma once

#include "kube/elastic_job.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::kube {

/// What the operator keeps of a job's pod.
struct job_pod {
  std::string uid, name, role;
  std::string job_uid;        ///< as its label says; empty: an older operator has made it
  std::string phase;          ///< Pending, Running, Succeeded, Failed, Unknown
  bool is_placed = false;     ///< on a machine
  std::string waits_for;      ///< of one that is pending: why, as scheduler or kubelet say
  std::uint32_t attempt = 0;  ///< of a master's
  std::string rank;           ///< of a node's
  std::uint32_t restarts = 0; ///< that its rank has had, for failures of its own
  std::optional<std::int64_t> exit_code; ///< of its first container
  std::string reason;                    ///< of its end: Evicted, OOMKilled, …
  std::string error;                     ///< of its end: the last that its log tells
  bool is_being_deleted = false;

  bool has_ended() const { return phase == "Succeeded" || phase == "Failed"; }
  bool is_live() const { return !has_ended() && !is_being_deleted; }
};

job_pod read_job_pod(const boost::json::value& pod);

/// The status of an ElasticJob, in DLRover's form: a phase, conditions, and counts of pods. Each
/// condition keeps the time at which it last changed.
class job_status {
 public:
  struct condition {
    bool is = false;
    std::string reason, message, changed;
  };

  /// What an earlier operator has written.
  void take_up(const boost::json::value& object);

  /// `now`: RFC 3339. True if the phase is another one.
  bool enter(const std::string& phase, const std::string& reason, const std::string& message,
             const std::string& now);
  /// What keeps it from going on; empty reason: nothing does.
  void trouble(const std::string& reason, const std::string& message, const std::string& now);
  void count(const std::map<std::string, job_pod>& pods);

  /// "REASON: MESSAGE" of what keeps it from going on; empty: nothing does.
  std::string told_trouble() const;

  const std::string& phase() const { return phase_; }
  /// Why it is in this phase.
  std::string reason() const;
  /// The same, "REASON: MESSAGE"; empty: nothing is told of it.
  std::string told_reason() const;
  bool is_over() const { return phase_ == "Succeeded" || phase_ == "Failed"; }

  /// The body of a JSON patch of its status, which a server refuses (422) for another job that has
  /// come under the name: this one's end is not that one's.
  std::string patch(const std::string& uid) const;

 private:
  std::string told(const std::string& type) const;
  void set(const std::string& type, bool is, const std::string& reason, const std::string& message,
           const std::string& now);

  std::string phase_, started_, completed_;
  std::map<std::string, condition> conditions_;
  boost::json::object replicas_;
  std::int64_t restarts_ = 0; ///< of all ranks that are there
};

} // namespace troupe::kube
