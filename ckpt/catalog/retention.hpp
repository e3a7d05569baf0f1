#pragma once

#include "ckpt/catalog/save_id.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::ckpt {

/// Which complete steps are kept: those that any rule keeps. With neither rule, all.
struct retention {
  /// The newest n that all nodes have, counting the newest; 0: this rule keeps none.
  std::uint64_t keep_latest = 0;
  std::uint64_t keep_every = 0; ///< multiples of k; 0: this rule keeps none
};

enum class step_state : std::uint8_t {
  incomplete, ///< begun, and without a manifest of the save that began it
  complete,
  damaged,    ///< has a manifest, and is not what that says: a person should look at it
  unreadable, ///< storage has failed where it had to be read, so it may be complete
};

const char* to_string(step_state s);

struct step_seen {
  std::uint64_t step = 0;
  step_state state = step_state::incomplete;
  save_id id; ///< that completed it, or else began it; none if that is not known
  /// Of a complete one: all nodes that have a part of it have completed it. One that is complete
  /// here alone cannot be loaded, and counts for no rule.
  bool confirmed = false;
  /// Of the line of the run that saves (line.hpp): training went through it, or, of one that is not
  /// complete, through another state of its run. Others are not this run's to count or to remove.
  bool of_line = true;
};

/// What is known beside the steps themselves when a save has ended.
struct retention_point {
  /// It is complete at all nodes that have a part of it. Newer ones that are complete here may not
  /// be so elsewhere: they stay, and no rule counts them. Nothing: no complete step goes, since an
  /// older one may be what all nodes have.
  std::optional<save_id> committed;
  /// Saves before this one have ended: what they have begun and not completed will not become
  /// complete any more. Such steps go at once, or failures in a row would fill the disk.
  save_id open_from;
};

/// By neither rule a complete step goes.
bool keeps_all(retention keep);

/// The steps to remove, in the order they were seen. None of another line. Never the newest
/// complete one nor the committed one, nor one that may still become complete or that could not be
/// read, nor a damaged one, which a person should see.
std::vector<std::uint64_t> removable(const std::vector<step_seen>& steps, retention keep,
                                     const retention_point& now);

} // namespace troupe::ckpt
