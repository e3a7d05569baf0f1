#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "runtime/base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <tuple>

namespace troupe::ckpt {

/// Which snapshot in this node's memory. A slot is used again and again, and a process may save one
/// step twice: only the sequence tells one snapshot from the next in the same slot.
using snapshot_key = std::tuple<local_rank, std::size_t, std::uint64_t>;

/// A snapshot in the memory of a training process here.
struct snapshot_here {
  local_rank local = 0;
  std::size_t slot = 0;
  std::uint64_t sequence = 0; ///< of the snapshot in its process's memory
  std::uint64_t step = 0;
  generation made_by;
  std::uint64_t save = 0; ///< of that generation
  global_rank rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t bytes = 0;

  save_id id() const { return {made_by, save}; }
  snapshot_key key() const { return {local, slot, sequence}; }
};

} // namespace troupe::ckpt
