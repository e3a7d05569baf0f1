#include "launch/options/metrics.hpp"

#include "launch/options/arguments.hpp"
#include "launch/options/rendezvous.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

namespace troupe::launch {

option_group metrics_group(metrics_arguments& w) {
  return in_full(option_group{"What a monitoring system reads",
                              {{scope::process,
                                {"--metrics-listen"},
                                "[HOST:]PORT",
                                "Serve metrics for Prometheus there, at /metrics, to all that can "
                                "reach it; without HOST on "
                                "every address (off)",
                                into(w.listen)},
                               {scope::process,
                                {"--metrics-linger"},
                                "SECONDS",
                                "Where a scraper reads them regularly, stay after the job's end "
                                "until it has read the result, so long at most (60; 0: never)",
                                into(w.linger)}}});
}

result<metrics_options> derive_metrics(const metrics_arguments& w) {
  constexpr double linger_max = 3'600;
  if (!(w.linger >= 0 && w.linger <= linger_max))
    return failure(errc::invalid, fmt::format("--metrics-linger: {} is not from 0 to {} seconds",
                                              w.linger, linger_max));
  metrics_options o;
  o.linger = std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.linger));
  const auto said = stripped(w.listen);
  if (said.empty())
    return o;
  const bool has_host = said.find(':') != std::string::npos;
  const auto where = parse_endpoint(has_host ? said : "0.0.0.0:" + said, 0);
  if (!where)
    return failure(errc::invalid,
                   fmt::format("--metrics-listen: '{}' is not [HOST:]PORT, as 9500 or "
                               "127.0.0.1:9500",
                               w.listen));
  o.listen = ports::endpoint{has_host ? where->host : "*", where->port};
  return o;
}

} // namespace troupe::launch
