#include "launch/wiring/placement.hpp"

#include "runtime/base/time.hpp"

#include <fmt/format.h>

namespace troupe::launch {

placement place_master(const launcher_options& o) {
  using hosting = placement::hosting;
  const auto& r = o.rendezvous;
  if (r.standalone)
    return {hosting::here, {"127.0.0.1", 0}};
  if (r.at_first_node && o.nodes_max == 1)
    return {hosting::here, {"127.0.0.1", 0}, r.endpoint.port};
  if (r.settings.is_host)
    return {*r.settings.is_host ? hosting::here : hosting::elsewhere, r.endpoint};
  if (r.node_rank.value_or(0) > 0)
    return {hosting::elsewhere, r.endpoint};
  // At an endpoint there may be a master already (actor-master); a static address is rank 0's own.
  return {r.node_rank && r.at_first_node ? hosting::here : hosting::if_able, r.endpoint};
}

log::event told_at_start(const ports::endpoint& master, bool runs_here, duration away_timeout) {
  const auto where = ports::to_string(master);
  auto text =
      runs_here
          ? fmt::format("this node runs the job's master at {}; if this machine is lost for good, "
                        "the other nodes train on for at most {} and recover from no failure "
                        "(actor-master on another machine avoids that)",
                        where, in_words(away_timeout))
          : fmt::format("this node runs no master; it looks for the job's at {}", where);
  return {runs_here ? log::level::notice : log::level::info,
          "master_placed",
          std::move(text),
          {{"endpoint", where}, {"here", runs_here}}};
}

} // namespace troupe::launch
