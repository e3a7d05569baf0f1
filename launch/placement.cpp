#include "launch/placement.hpp"

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

} // namespace troupe::launch
