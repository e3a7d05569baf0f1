#pragma once

#include "actors/master/diagnosis/diagnosis_policy.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace troupe::actors {

/// How often verdicts may have stacks gathered. A job that hangs again and again would else stand
/// still for being looked at, and fill a disk with pictures of the same.
///
/// A few may follow each other at once, since the second hang is often the one that tells. Then
/// each must be further behind the last than the one before it; after a long calm it begins anew.
class stacks_budget {
 public:
  explicit stacks_budget(const diagnosis_policy& policy) : policy_(policy) {}

  /// Whether there may be one now, which is counted.
  bool take(instant now) {
    if (last_ && now - *last_ >= distance_ + policy_.stacks_again_most)
      at_once_ = 0;
    if (at_once_ < policy_.stacks_at_once) {
      ++at_once_;
      distance_ = policy_.stacks_again_first;
    } else if (last_ && now - *last_ < distance_) {
      return false;
    } else {
      distance_ = std::min<duration>(distance_ * 2, policy_.stacks_again_most);
    }
    last_ = now;
    return true;
  }

 private:
  diagnosis_policy policy_;
  std::uint32_t at_once_ = 0;
  duration distance_{}; ///< of the next one from the last
  std::optional<instant> last_;
};

} // namespace troupe::actors
