#include "launch/wiring/metrics_service.hpp"

#include "launch/options/version.hpp"
#include "metrics/job_metrics.hpp"
#include "metrics/scrapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
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

  void read(instant made) {
    const std::lock_guard lock(mutex);
    scrapes.read(made);
    changed.notify_all();
  }

  log::event cost() {
    using metrics::spent;
    const std::lock_guard lock(mutex);
    const auto at = now();
    const auto in = [&](spent kind) { return job.time_in(at, kind); };
    const auto lost = in(spent::recovering) + in(spent::standing);
    const auto all = job.time_in_all(at);
    std::string kinds;
    if (in(spent::recovering) > duration::zero())
      kinds = in_words(in(spent::recovering)) + " recovering";
    if (in(spent::standing) > duration::zero())
      kinds += (kinds.empty() ? "" : ", ") + in_words(in(spent::standing)) + " standing still";
    return {lost > duration::zero() ? log::level::notice : log::level::info,
            "time_spent",
            fmt::format("interruptions took {} of {}{}{}", in_words(lost), in_words(all),
                        kinds.empty() ? "" : ": " + kinds,
                        job.knows_first_steps() || kinds.empty()
                            ? ""
                            : " (until the workers ran: first steps are not known here)"),
            {{"starting_ms", milliseconds_of(in(spent::starting))},
             {"training_ms", milliseconds_of(in(spent::training))},
             {"recovering_ms", milliseconds_of(in(spent::recovering))},
             {"standing_ms", milliseconds_of(in(spent::standing))}}};
  }

  /// After the job's end, at `at`.
  duration wait_at(instant at, duration most) const {
    const auto end = job.concluded_at();
    if (!end || scrapes.read_since(*end))
      return {};
    return std::max(scrapes.wait_after(*end, most) - (at - *end), duration::zero());
  }

  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  bool let_go = false;
  metrics::job_metrics job;
  metrics::scrapes scrapes;
  std::shared_ptr<diag::progress_host> processes;
  std::vector<std::uint32_t> local_ranks;
};

metrics_service::metrics_service(const metrics_options& options, const os::log_origin& from)
    : options_(options), counts_(std::make_shared<counts>(from)) {}

/// A sink may be kept for longer than the processes may be looked at.
metrics_service::~metrics_service() {
  server_.reset();
  const std::lock_guard lock(counts_->mutex);
  counts_->processes.reset();
}

log::sink metrics_service::sink() const {
  return [to = counts_](const std::string& from, const log::event& e) {
    const auto at = now();
    const std::lock_guard lock(to->mutex);
    to->job.observe(at, from, e);
  };
}

log::sink metrics_service::telling_cost(log::sink to) const {
  return [to = std::move(to), counts = counts_](const std::string& from, const log::event& e) {
    to(from, e);
    if (e.name == "job_concluded")
      to(from, counts->cost());
  };
}

result<void> metrics_service::serve(const log::sink& log) {
  if (!options_.listen)
    return {};
  auto server =
      os::text_server::open(*options_.listen, {{"/metrics", metrics::content_type,
                                                [from = counts_] { return from->text(); },
                                                [to = counts_](instant made) { to->read(made); }}});
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

void tell_linger(const metrics_service& metrics, const char* from, const log::sink& log) {
  if (const auto most = metrics.lingers_for(); most > duration::zero())
    log(from, {log::level::notice,
               "metrics_linger",
               fmt::format("the job's result can be read at /metrics for {} more, until a scraper "
                           "has read it (--metrics-linger; a signal ends this)",
                           in_words(most)),
               {}});
}

duration metrics_service::lingers_for() const {
  const std::lock_guard lock(counts_->mutex);
  return server_ && !counts_->let_go ? counts_->wait_at(now(), options_.linger) : duration::zero();
}

void metrics_service::linger() {
  const auto until = now() + lingers_for();
  std::unique_lock lock(counts_->mutex);
  counts_->changed.wait_until(lock, until, [this] {
    return counts_->let_go || counts_->wait_at(now(), options_.linger) == duration::zero();
  });
}

void metrics_service::let_go() {
  const std::lock_guard lock(counts_->mutex);
  counts_->let_go = true;
  counts_->changed.notify_all();
}

void metrics_service::show_steps(std::shared_ptr<diag::progress_host> of,
                                 std::uint32_t local_ranks) {
  const std::lock_guard lock(counts_->mutex);
  counts_->processes = std::move(of);
  counts_->local_ranks.resize(local_ranks);
  std::iota(counts_->local_ranks.begin(), counts_->local_ranks.end(), 0u);
}

} // namespace troupe::launch
