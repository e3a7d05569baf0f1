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

/// A step that is not listed among the complete ones, and not because it was given up.
struct step_passed_over {
  std::uint64_t step = 0;
  std::string why;
};

/// The unreadable ones, and the damaged ones that a newer save than this one has begun, or none
/// that is known; without one, all.
result<std::vector<step_passed_over>> steps_passed_over(ports::storage& storage,
                                                        const std::optional<save_id>& than);

/// A shard of a complete step.
struct shard_to_read {
  found_step of;
  shard which;
};

/// `invalid` if the step is gone, was saved again since, or has no such shard; `unavailable` if
/// that cannot be told.
result<shard_to_read> find_shard(ports::storage& storage, const state_id& of, std::uint32_t number);

} // namespace troupe::ckpt
