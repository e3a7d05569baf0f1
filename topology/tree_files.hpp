#pragma once

#include "runtime/base/result.hpp"
#include "topology/located_json.hpp"
#include "topology/network_tree.hpp"

#include <string_view>

/// Files in which administrators write down their network.
namespace troupe::topology {

/// `topology_config` of the ConfigMap `node-topology-config`: a line for each node, "asw psw ip",
/// with the switch that it is plugged into first. Empty lines do not matter.
result<network_tree> tree_of_lines(std::string_view text);

/// A tree of any depth, as JSON. An object has switches by their names; a list has what hangs from
/// a switch: nodes, and objects with further switches.
///
///     {"psw-0": {"asw-0": ["10.0.0.1", "10.0.0.2"], "asw-1": ["10.0.0.3"]},
///      "psw-1": ["10.0.0.4", {"asw-0": ["10.0.0.5"]}]}
result<network_tree> tree_of_json(std::string_view text);
result<network_tree> tree_of_json(const json_value& document);

} // namespace troupe::topology
