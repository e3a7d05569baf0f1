#pragma once

#include "diag/progress_host.hpp"
#include "launch/options/metrics.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/log/json_line.hpp"
#include "runtime/os/metrics/text_server.hpp"

#include <cstdint>
#include <memory>

namespace troupe::launch {

/// Counts the events of this process, tells at the end what the time went to, and serves all of it
/// where that is asked for (--metrics-listen).
class metrics_service {
 public:
  metrics_service(const metrics_options& options, const os::log_origin& from);
  ~metrics_service();
  metrics_service(const metrics_service&) = delete;
  metrics_service& operator=(const metrics_service&) = delete;

  /// For the log. May be kept, and called from any thread, also after this object is gone.
  log::sink sink() const;

  /// `to`, with a line on what interruptions have cost behind the one that concludes the job. The
  /// numbers are those of the page: there is one account of time. `to` must lead to sink().
  log::sink telling_cost(log::sink to) const;

  /// Begins to serve, and tells `log` where, or why not. `refused`, naming the option and the
  /// address.
  result<void> serve(const log::sink& log);

  /// After the job's end, how long linger() would wait for a scraper that has read regularly. Zero:
  /// not at all.
  duration lingers_for() const;
  /// Blocks until a scraper has read the job's result, for lingers_for() at most.
  void linger();
  /// Ends linger(), from any thread.
  void let_go();

  /// The training processes of this node, whose steps are told, too.
  void show_steps(std::shared_ptr<diag::progress_host> of, std::uint32_t local_ranks);

 private:
  struct counts;

  metrics_options options_;
  std::shared_ptr<counts> counts_;
  std::unique_ptr<os::text_server> server_;
};

/// Says what the process waits for, if it does; `from` is the program.
void tell_linger(const metrics_service& metrics, const char* from, const log::sink& log);

} // namespace troupe::launch
