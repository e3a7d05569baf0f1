#include "launch/placement.hpp"

namespace troupe::launch {

placement place_master(const launcher_options& o) {
  const bool address_given = o.rdzv_endpoint || o.master_port || o.master_addr != "127.0.0.1";
  if (o.standalone || (o.nodes_max == 1 && !address_given))
    return {placement::hosting::here, {"127.0.0.1", 0}};
  placement p;
  p.master = o.rdzv_endpoint ? *o.rdzv_endpoint
                             : ports::endpoint{o.master_addr, o.master_port.value_or(29'500)};
  // At an endpoint there may be a master already (actor-master); a static address is rank 0's own.
  if (o.node_rank.value_or(0) > 0)
    p.host = placement::hosting::elsewhere;
  else
    p.host =
        o.node_rank && !o.rdzv_endpoint ? placement::hosting::here : placement::hosting::if_able;
  return p;
}

} // namespace troupe::launch
