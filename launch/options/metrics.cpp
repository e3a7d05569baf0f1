#include "launch/options/metrics.hpp"

#include "launch/options/arguments.hpp"
#include "launch/options/rendezvous.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

namespace troupe::launch {

option_group metrics_group(std::string& listen) {
  return in_full(option_group{"What a monitoring system reads",
                              {{{"--metrics-listen"},
                                "[HOST:]PORT",
                                "Serve metrics for Prometheus there, at /metrics, to all that can "
                                "reach it; without HOST on "
                                "every address (off)",
                                into(listen)}}});
}

result<std::optional<ports::endpoint>> derive_metrics(const std::string& listen) {
  const auto said = stripped(listen);
  if (said.empty())
    return std::nullopt;
  const bool has_host = said.find(':') != std::string::npos;
  const auto where = parse_endpoint(has_host ? said : "0.0.0.0:" + said, 0);
  if (!where)
    return failure(errc::invalid,
                   fmt::format("--metrics-listen: '{}' is not [HOST:]PORT, as 9500 or "
                               "127.0.0.1:9500",
                               listen));
  return ports::endpoint{has_host ? where->host : "*", where->port};
}

} // namespace troupe::launch
