#pragma once

#include "runtime/base/result.hpp"
#include "topology/located_json.hpp"
#include "topology/network_tree.hpp"

namespace troupe::topology {

/// `tor_info` of MindCluster's ConfigMap `basic-tor-node-cm`: servers by their addresses, below the
/// switch of each list.
result<network_tree> tree_of_tor_nodes(const json_value& document);

} // namespace troupe::topology
