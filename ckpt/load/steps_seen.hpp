#pragma once

#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/load/rank_view.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

/// A rank's part of a load at its checkpoint directory.
namespace troupe::ckpt {

/// The complete steps there, newest first, at most `most`. A place that is not there has none.
result<void> see_steps(ports::storage& storage, std::size_t most, rank_view& into);

/// A shard of a complete step.
struct shard_to_read {
  found_step of;
  shard which;
};

/// `invalid` if the step is gone, was saved again since, or has no such shard.
result<shard_to_read> find_shard(ports::storage& storage, const state_id& of, std::uint32_t number);

} // namespace troupe::ckpt
