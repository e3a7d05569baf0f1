#include "metrics/process_metrics.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe::metrics {

process_metrics::process_metrics(std::string version) : version_(std::move(version)) {}

void process_metrics::observe(const log::event& e) {
  ++by_level_[std::min(static_cast<std::size_t>(e.severity), by_level_.size() - 1)];
  actor_restarts_ += e.name == "child_restarted";
}

void process_metrics::write(exposition& to) const {
  to.gauge("troupe_build_info", "1; the label says which version runs.");
  to.sample(1, {{"version", version_}});
  to.counter("troupe_events_total", "Events of the log, by level (docs/events.md).");
  for (std::size_t n = 0; n < by_level_.size(); ++n)
    to.sample(static_cast<double>(by_level_[n]),
              {{"level", log::to_string(static_cast<log::level>(n))}});
  to.counter("troupe_actor_restarts_total", "Actors that failed and were started again.",
             static_cast<double>(actor_restarts_));
}

} // namespace troupe::metrics
