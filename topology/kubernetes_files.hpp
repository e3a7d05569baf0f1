#pragma once

#include "runtime/base/result.hpp"
#include "topology/located_json.hpp"
#include "topology/network_tree.hpp"

#include <string>
#include <vector>

/// What Kubernetes knows of the network, as `kubectl get … -o json` prints it: one object, a list
/// of them, or several kinds in one list.
namespace troupe::topology {

/// Whether it is an object of Kubernetes, of any kind, or a list.
bool is_of_kubernetes(const json_value& document);

/// Nodes by their names and internal addresses. `label_keys`: the labels whose values are the
/// switches above a node, the top of the network first. A node hangs from those that it has, up to
/// the first that it lacks.
///
/// Refuses a key that no node has, and no keys at all.
result<network_tree> tree_of_nodes(const json_value& document,
                                   const std::vector<std::string>& label_keys);

/// HyperNodes of Volcano: a HyperNode is a switch, and has nodes or HyperNodes of lower tiers below
/// it. Members by `regexMatch` and `labelMatch` are looked for among the nodes that are in the
/// document as well; without any they are refused, since nothing says which nodes there are.
///
/// Refuses what is below two HyperNodes, or below one that is not of a higher tier.
result<network_tree> tree_of_hypernodes(const json_value& document);

/// Which of the two it is.
struct kubernetes_kinds {
  bool nodes = false, hypernodes = false;
  std::string other; ///< the first other kind
};
kubernetes_kinds kinds_in(const json_value& document);

} // namespace troupe::topology
