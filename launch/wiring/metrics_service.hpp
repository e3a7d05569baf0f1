#pragma once

#include "diag/progress_host.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/log/json_line.hpp"
#include "runtime/os/metrics/text_server.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::launch {

/// Counts the events of this process and serves what they come to (--metrics-listen). Does nothing
/// where that is not asked for.
class metrics_service {
 public:
  /// `listen`: where to serve; nothing: nowhere.
  metrics_service(std::optional<ports::endpoint> listen, const os::log_origin& from);
  ~metrics_service();
  metrics_service(const metrics_service&) = delete;
  metrics_service& operator=(const metrics_service&) = delete;

  /// For the log; empty if nothing is served. May be kept, and called from any thread, also after
  /// this object is gone.
  log::sink sink() const;

  /// Begins to serve, and tells `log` where, or why not. `refused`, naming the option and the
  /// address.
  result<void> serve(const log::sink& log);

  /// The training processes of this node, whose steps are told, too.
  void show_steps(std::shared_ptr<diag::progress_host> of, std::uint32_t local_ranks);

 private:
  struct counts;

  std::optional<ports::endpoint> listen_;
  std::shared_ptr<counts> counts_;
  std::unique_ptr<os::text_server> server_;
};

} // namespace troupe::launch
