#pragma once

#include "ckpt/arena/held_piece.hpp"
#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::ckpt {

/// What the snapshot of this sequence in memory for others' snapshots is. The node supervisor goes
/// on writing there, so nothing is believed that was not there before and after it was read.
/// `memory` is the slot's, and follows what its holder has made of it. `invalid` if the snapshot is
/// gone, or no piece.
result<held_piece> held_in(const slots& words, os::shared_memory& memory, std::size_t slot,
                           std::uint64_t sequence);

} // namespace troupe::ckpt
