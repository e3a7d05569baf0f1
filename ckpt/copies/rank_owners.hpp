#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// Which node runs which ranks, in the generations that this node takes part in.
///
/// A source of copies says as which rank it gives. Its link has proven a node's name and no rank,
/// so without this table any node of the job could give in another's place, and a lost node's
/// snapshot would be rebuilt from what it gave. Thread-safe.
class rank_owners {
 public:
  /// Said once a generation runs, and anew on each link to the master.
  void learn(const messages::msg<messages::RankOwners>& m);

  /// Why `node` may not give this snapshot; nothing if it runs that rank. A snapshot of a
  /// generation that is not known here is judged by the newest one: its ranks give what they
  /// loaded.
  std::optional<std::string> validation_error(messages::CopyBegin::Reader says,
                                              const std::string& node) const;

 private:
  struct known_world {
    std::uint64_t generation = 0;
    std::vector<std::uint64_t> nodes; ///< fingerprints, by group rank
    std::vector<std::uint64_t> ends;  ///< of each: the rank after its last one

    bool runs(const std::string& node, std::uint64_t rank) const;
  };

  mutable std::mutex mutex_;
  std::deque<known_world> worlds_; ///< the newest last; the last few
};

} // namespace troupe::ckpt
