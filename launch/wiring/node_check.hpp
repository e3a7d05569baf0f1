#pragma once

#include "actors/topology.hpp"
#include "launch/options/node_check.hpp"

namespace troupe::launch {

/// What the options say about the check before the start, to the master's actors.
void apply_node_check(const node_check_options& o, actors::master_options& m);

} // namespace troupe::launch
