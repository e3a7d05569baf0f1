#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::ckpt {

/// Which node runs which ranks, in the generations that this node was prepared for.
///
/// A giver of copies says as which rank it gives. Its link has proven a node's name and no rank, so
/// without this table any node of the job could give in another's place, and a lost node's image
/// would be rebuilt from what it gave. Thread-safe.
class rank_owners {
 public:
  /// From Prepare, which every member has before any worker of that generation is started.
  void learn(messages::World::Reader world);

  /// Why `node` may not give this image; nothing if it runs that rank. An image of a generation
  /// that is not known here is judged by the newest one: its ranks give what they loaded.
  std::optional<std::string> objection(messages::CopyBegin::Reader says,
                                       const std::string& node) const;

 private:
  struct range {
    std::uint32_t ranks = 0;
    std::string node;
  };
  struct known_world {
    std::uint64_t generation = 0;
    std::map<std::uint32_t, range> by_first_rank;
  };

  mutable std::mutex mutex_;
  std::deque<known_world> worlds_; ///< the newest last; the last few
};

} // namespace troupe::ckpt
