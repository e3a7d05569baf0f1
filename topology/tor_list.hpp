#pragma once

#include "runtime/base/result.hpp"
#include "topology/located_json.hpp"
#include "topology/network_tree.hpp"

#include <string_view>

namespace troupe::topology {

/// `ranktable_tor.json`, compressed or as it is: the top-of-rack switch of each device of each
/// server. Nodes are servers by their ids.
///
/// A node hangs from the switch of its devices. If its devices are plugged into several switches,
/// as rails are, these together are its switch: two nodes share it if they have the same ones.
result<network_tree> tree_of_tor_list(std::string_view text);
result<network_tree> tree_of_tor_list(const json_value& document);

} // namespace troupe::topology
