#pragma once

#include "ckpt/arena/slots.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe::ckpt {

/// A slot of the memory for others' snapshots holds one parity, this before it. The slot's snapshot
/// says step, generation and world; its `rank` is the target's, its `bytes` are with this.
struct held_piece {
  static constexpr std::uint64_t magic_value = 0x31636569707274; // "trpiec1"
  static constexpr std::size_t bytes_before = 4096;

  std::uint64_t magic = 0;
  std::uint32_t members = 0, parity = 0, target = 0, stripe = 0, row = 0;
  std::array<std::uint32_t, slot_group::members_max> ranks{}; ///< of the members, global
  std::array<std::uint64_t, slot_group::members_max>
      bytes{}; ///< of their snapshots; 0: gave nothing
  std::array<std::uint32_t, slot_group::members_max> crc32{}; ///< of their snapshots
};
static_assert(sizeof(held_piece) <= held_piece::bytes_before);

/// Whether a later slot holds the same parity of the same state: ranks that start again give what
/// they have loaded once more. `piece_in`: what a slot that is whole holds; null if it cannot be
/// read.
bool is_given_again(const slots& words, std::size_t slot,
                    const std::function<const held_piece*(std::size_t)>& piece_in);

} // namespace troupe::ckpt
