#pragma once

#include "actors/topology.hpp"
#include "tests/sim/cluster.hpp"

#include <map>
#include <string>

namespace troupe::sim {

struct cluster::trees {
  actors::master_addresses master;
  std::map<std::string, actors::node_addresses> nodes;
};

} // namespace troupe::sim
