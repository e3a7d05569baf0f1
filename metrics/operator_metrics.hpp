#pragma once

#include "metrics/exposition.hpp"
#include "metrics/process_metrics.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace troupe::metrics {

/// What a monitoring system and a kubelet are told of an operator: read off the events of its log
/// (docs/events.md) and off its requests to the API server.
///
/// An operator asks for the lease, its own or not, every few seconds as long as its actors run.
/// So a request that was made lately shows that they run, and one that was answered well that it
/// can do its work. An API server that is away is no reason to start the operator again.
class operator_metrics {
 public:
  /// Without a request for so long its actors stand still. Above the time of a request that is
  /// never answered, with the wait behind it.
  static constexpr duration stands_still_after = 60s;
  /// Without a good answer for so long it can do nothing.
  static constexpr duration useless_after = 30s;
  /// Jobs that are told by their phase; the phases of further ones are not known here.
  static constexpr std::size_t jobs_max = 50'000;

  operator_metrics(std::string version, instant began);

  void observe(const log::event& e);
  void asked(instant now);
  /// `method` of HTTP, "WATCH" for a watch, which is answered when it ends; `status` 0: no answer
  /// came.
  void answered(instant now, const std::string& method, unsigned status, duration took);

  bool is_alive(instant now) const { return now - asked_at_ < stands_still_after; }
  bool is_ready(instant now) const { return now - heard_at_ < useless_after; }

  /// All families.
  std::string text() const;

 private:
  process_metrics process_;
  instant asked_at_;
  instant heard_at_; ///< before the first answer: so long ago that it is not ready
  bool leads_ = false;
  std::map<std::string, std::string> phases_;                          ///< of jobs
  std::map<std::string, std::uint64_t> blocked_;                       ///< by reason
  std::map<std::pair<std::string, unsigned>, std::uint64_t> requests_; ///< by method and status
  duration_histogram took_; ///< of requests that are no watches
};

} // namespace troupe::metrics
