#pragma once

#include "launch/keeper/limits.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/time.hpp"

#include <optional>

namespace troupe::launch {

/// A fork that the system refuses (too many processes, no memory) is tried again: soon at first,
/// later less often.
struct refused_fork {
  std::optional<instant> since; ///< the first refusal in a row
  std::optional<instant> again_at;
  back_off wait{limits::fork_again_first, limits::fork_again_max};

  /// Answers whether it is the first in a row.
  bool refused(instant now) {
    const bool first = !since;
    if (first)
      wait.reset();
    since = since.value_or(now);
    again_at = now + wait.next();
    return first;
  }

  /// Answers once that it is time to try again.
  bool due(instant now) {
    if (!again_at || now < *again_at)
      return false;
    again_at.reset();
    return true;
  }
};

} // namespace troupe::launch
