#pragma once

#include "ckpt/copies/rank_owners.hpp"

#include <mutex>

namespace troupe::ckpt {

/// For the replicator, which learns, and the replication target, which asks, on threads of their
/// own.
class shared_rank_owners {
 public:
  void learn(const messages::msg<messages::RankOwners>& m) {
    const std::lock_guard lock(mutex_);
    owners_.learn(m);
  }
  std::optional<std::string> validation_error(messages::CopyBegin::Reader says,
                                              const std::string& node) const {
    const std::lock_guard lock(mutex_);
    return owners_.validation_error(says, node);
  }

 private:
  mutable std::mutex mutex_;
  rank_owners owners_;
};

} // namespace troupe::ckpt
