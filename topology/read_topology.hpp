#pragma once

#include "runtime/base/result.hpp"
#include "topology/network_tree.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// One door for all files that tell of a network.
namespace troupe::topology {

enum class topology_format : std::uint8_t {
  lines,      ///< "asw psw ip"
  json_tree,  ///< switches by their names
  rank_table, ///< 1.0, 1.2, 2.0
  tor_list,   ///< ranktable_tor.json
  tor_nodes,  ///< basic-tor-node-cm
  hypernodes, ///< of Volcano
  nodes,      ///< of Kubernetes, by their labels
};

/// "a rank table"
std::string_view in_words(topology_format format);

struct topology_read {
  network_tree tree;
  topology_format taken_for = topology_format::lines;
};

/// Knows by what is in it which format it is; compressed or not. `label_keys` as for
/// `tree_of_nodes`; with them a file of nodes and HyperNodes is one of nodes.
///
/// What it refuses it says in one line, with what it took the file for. `errc::unavailable`: a rank
/// table that is not completed, which is to be read again.
result<topology_read> read_topology(std::string_view text,
                                    const std::vector<std::string>& label_keys);

} // namespace troupe::topology
