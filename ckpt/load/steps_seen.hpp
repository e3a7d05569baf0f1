#pragma once

#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/load/rank_view.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A rank's part of a load at its checkpoint directory.
namespace troupe::ckpt {

/// What a step counts for that could not be read, and may be complete.
enum class unreadable_step : std::uint8_t {
  is_an_error, ///< `unavailable`: another look may see it
  is_none,     ///< after many looks, so that the step before can be had
};

/// The complete steps there, newest first, at most `most`. A place that is not there has none.
result<void> see_steps(ports::storage& storage, std::size_t most, rank_view& into,
                       unreadable_step what = unreadable_step::is_an_error);

/// Something that a load has not taken, though it is newer than what it took, or may be.
struct step_passed_over {
  std::string what; ///< "step 100", or the name of a directory
  std::string why;
  /// It was complete once, so that training which begins anew loses it. Else it is only told.
  bool was_complete = true;
};

/// The unreadable ones; the damaged ones and those that are not complete which a newer save than
/// this one has begun, or none that is known; and what trackers name that is a later step and not
/// there. Without a save that was taken, all of them.
result<std::vector<step_passed_over>> steps_passed_over(ports::storage& storage,
                                                        const std::optional<state_id>& than);

/// A shard of a complete step.
struct shard_to_read {
  found_step of;
  shard which;
};

/// `invalid` if the step is gone, was saved again since, or has no such shard; `unavailable` if
/// that cannot be told.
result<shard_to_read> find_shard(ports::storage& storage, const state_id& of, std::uint32_t number);

} // namespace troupe::ckpt
