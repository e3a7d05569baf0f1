#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// Which node runs which ranks, in the newest generation that this node has heard of.
///
/// A source of copies says as which rank it gives. Its link has proven a node's name and no rank,
/// so without this table any node of the job could give in another's place, and a lost node's
/// snapshot would be rebuilt from what it gave. So could a node that stood still and does not know
/// yet that another has taken its place: what it gives is of a step that no rank relies on, and its
/// pieces would take the memory of those that are held since.
class rank_owners {
 public:
  /// Said once a generation runs, and anew on each link to the master.
  void learn(const messages::msg<messages::RankOwners>& m);

  /// Why `node` may not give this snapshot; nothing if it runs that rank. The snapshot may be of an
  /// earlier generation: ranks give what they loaded.
  std::optional<std::string> validation_error(messages::CopyBegin::Reader says,
                                              const std::string& node) const;

 private:
  bool runs(const std::string& node, std::uint64_t rank) const;

  std::uint64_t generation_ = 0;     ///< 0: nothing is known yet
  std::vector<std::uint64_t> nodes_; ///< fingerprints, by group rank
  std::vector<std::uint64_t> ends_;  ///< of each: the rank after its last one
};

} // namespace troupe::ckpt
