#include "launch/wiring/metrics_service.hpp"

#include "launch/options/version.hpp"
#include "metrics/job_metrics.hpp"

#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe::launch {

namespace {

constexpr auto component = "metrics";

instant now() {
  return std::chrono::steady_clock::now();
}

} // namespace

struct metrics_service::counts {
  explicit counts(const os::log_origin& from)
      : job({from.job, from.node, version_number()}, now()) {}

  std::string text() {
    const std::lock_guard lock(mutex);
    std::vector<diag::page_reading> pages;
    if (processes)
      pages = processes->read(local_ranks);
    return job.text(now(), pages);
  }

  std::mutex mutex; ///< of what follows
  metrics::job_metrics job;
  std::shared_ptr<diag::progress_host> processes;
  std::vector<std::uint32_t> local_ranks;
};

metrics_service::metrics_service(std::optional<ports::endpoint> listen, const os::log_origin& from)
    : listen_(std::move(listen)), counts_(std::make_shared<counts>(from)) {}

/// A sink may be kept for longer than the processes may be looked at.
metrics_service::~metrics_service() {
  server_.reset();
  const std::lock_guard lock(counts_->mutex);
  counts_->processes.reset();
}

log::sink metrics_service::sink() const {
  if (!listen_)
    return {};
  return [to = counts_](const std::string& from, const log::event& e) {
    const auto at = now();
    const std::lock_guard lock(to->mutex);
    to->job.observe(at, from, e);
  };
}

result<void> metrics_service::serve(const log::sink& log) {
  if (!listen_)
    return {};
  auto server = os::text_server::open(
      *listen_, {"/metrics", metrics::content_type, [from = counts_] { return from->text(); }});
  if (!server) {
    const auto why = "--metrics-listen: " + server.error().what;
    log(component,
        {log::level::warning, "metrics_unavailable", why + "; this process serves no metrics", {}});
    return failure(errc::refused, why);
  }
  server_ = std::move(*server);
  const auto where = ports::to_string(server_->where());
  log(component, {log::level::info,
                  "metrics_served",
                  fmt::format("metrics are at http://{}/metrics", where),
                  {{"endpoint", where}}});
  return {};
}

void metrics_service::show_steps(std::shared_ptr<diag::progress_host> of,
                                 std::uint32_t local_ranks) {
  const std::lock_guard lock(counts_->mutex);
  counts_->processes = std::move(of);
  counts_->local_ranks.resize(local_ranks);
  std::iota(counts_->local_ranks.begin(), counts_->local_ranks.end(), 0u);
}

} // namespace troupe::launch
