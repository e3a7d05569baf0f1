#pragma once

#include "diag/progress_host.hpp"
#include "metrics/exposition.hpp"
#include "metrics/process_metrics.hpp"
#include "metrics/time_account.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What a monitoring system is told of a job.
///
/// All of it is read off the events that the log gets: their names and fields are stable
/// (docs/events.md), no actor is asked anything, and what is told here is what the log says. A
/// process counts from its own beginning, as is usual for counters.
namespace troupe::metrics {

class job_metrics {
 public:
  struct origin {
    std::string job, node; ///< empty: not told
    std::string version;
  };
  job_metrics(const origin& from, instant began);

  void observe(instant now, const std::string& component, const log::event& e);

  /// The samples of troupe_time_seconds_total.
  duration time_in(instant now, spent kind) const { return account_.in(now, kind); }
  /// The time until the job's end.
  duration time_in_all(instant now) const { return account_.all(now); }
  /// False: where this process looks from, the time from the workers' start on is training.
  bool knows_first_steps() const { return knows_first_steps_; }

  /// When the job ended; nothing: it runs, or its master is elsewhere.
  std::optional<instant> concluded_at() const { return concluded_at_; }

  /// All families. `pages`: of this node's training processes.
  std::string text(instant now, const std::vector<diag::page_reading>& pages) const;

 private:
  using handler = void (job_metrics::*)(instant, const log::event&);
  static const std::map<std::string, handler>& handlers();

  // The master's.
  void sealed(instant now, const log::event& e);
  void started(instant now, const log::event& e);
  void first_step(instant now, const log::event& e);
  void restarting(instant now, const log::event& e);
  void excluded(instant now, const log::event& e);
  void hang(instant now, const log::event& e);
  void hang_over(instant now, const log::event& e);
  void step_settled(instant now, const log::event& e);
  void checked(instant now, const log::event& e);
  void concluded(instant now, const log::event& e);
  // The node's.
  void step_complete(instant now, const log::event& e);
  void linked(instant, const log::event&) { linked_ = true; }
  void unlinked(instant, const log::event&) { linked_ = false; }
  void journal_waits(instant, const log::event&) { journal_waits_ = true; }
  void journal_goes_on(instant, const log::event&) { journal_waits_ = false; }

  void recover(instant now, const std::string& restart_class);
  void prepared(instant now, duration took);
  std::uint64_t seen(const char* event) const;
  void write_job(exposition& to, instant now) const;
  void write_recovery(exposition& to, instant now) const;
  void write_checkpoints(exposition& to, instant now) const;
  void write_node(exposition& to, const std::vector<diag::page_reading>& pages) const;

  labels origin_;
  process_metrics process_;
  bool master_here_ = false;
  bool node_here_ = false;
  std::map<std::string, std::uint64_t> seen_; ///< of the events that are counted only

  std::int64_t world_size_ = 0;
  std::int64_t nodes_ = 0;
  std::map<std::string, std::uint64_t> restarts_; ///< by class
  std::map<std::string, duration_histogram> phases_;
  time_account account_;
  std::optional<instant> recovering_since_;
  // Of a world whose first step is not known yet: until then it prepares, which is not training.
  std::optional<instant> running_since_;
  duration running_after_failure_{}; ///< zero: it follows no failure
  duration stood_before_{};          ///< all time in `standing` before that world ran
  bool knows_first_steps_ = false;
  spent preparing_ = spent::starting;
  std::optional<std::int64_t> settled_step_, saved_step_;
  std::optional<instant> settled_at_;
  std::optional<double> check_seconds_;
  std::optional<bool> success_;
  std::optional<instant> concluded_at_;
  bool linked_ = false;
  bool journal_waits_ = false;
};

} // namespace troupe::metrics
