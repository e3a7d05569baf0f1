#pragma once

#include "actors/topology.hpp"
#include "tests/sim/cluster.hpp"

#include <map>
#include <string>

namespace troupe::sim {

struct cluster::trees {
  std::map<std::string, actors::master_addresses> masters;
  std::map<std::string, actors::node_addresses> nodes;
};

} // namespace troupe::sim
