#pragma once

#include "actors/master/network_check/network_check_core.hpp"
#include "runtime/base/random.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

/// Nodes and links of which it is known what is broken and slow, for tests of the network check;
/// and the peer's rule over the same ones.
namespace troupe::testing::network_check_world {

using namespace actors::network_check;
using ends = std::pair<node_index, node_index>; ///< ascending

enum class own_probes {
  absent, ///< no node has one
  blind,  ///< all have one, and it sees nothing of what is broken
  seeing, ///< it fails, or is slow, at a node that is
};

struct truth {
  node_index nodes = 0;
  std::set<node_index> broken, slow;
  std::set<ends> broken_links, slow_links;
  own_probes own = own_probes::absent;
  std::uint64_t seed = 1; ///< of times, and of which failure is silence
  /// There is a party that is no node, with the index `nodes`, far slower than all of them.
  bool witness = false;
  std::set<node_index> witness_is_closed_to;

  bool works(node_index a, node_index b) const;
  bool fast(node_index a, node_index b) const;
  /// Each of the node's links to a node that works and is not slow is broken or slow: that it works
  /// itself shows in no probe, but one with the witness.
  bool cuts_off(node_index n) const;
  bool works_with_witness(node_index n) const { return witness && works(n, nodes); }
  /// In one line, for a test that fails.
  std::string in_words() const;
};

struct outcome_of_check {
  history all;
  verdict said;
};

/// Probes what the core asks for until it has a verdict.
outcome_of_check check(const truth& t, const policy& with);

/// What of the promises in network_check_core.hpp does not hold; empty: all do.
std::string broken_promise(const truth& t, const outcome_of_check& done);

/// Of these, what holds for any number of rounds: no finding is false, and no broken node is good.
std::string false_or_hidden(const truth& t, const outcome_of_check& done);

struct peer_verdict {
  std::set<node_index> faulty, slow;
  bool cannot_locate = false; ///< then all nodes are in `faulty`
};

/// Two rounds, neighbours and then fastest with slowest; faulty: failed in both; slow: the better
/// time is more than twice the median; with three nodes or fewer every node fails if one does. The
/// last pair of round 1 takes the odd node in.
peer_verdict peer_check(const truth& t);

} // namespace troupe::testing::network_check_world
