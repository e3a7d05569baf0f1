#include "ckpt/arena/held_piece.hpp"

#include <tuple>

namespace troupe::ckpt {

namespace {

bool same_state(const slot_snapshot& a, const slot_snapshot& b) {
  return std::tie(a.generation, a.save, a.step, a.rank, a.world_size) ==
         std::tie(b.generation, b.save, b.step, b.rank, b.world_size);
}

bool same_parity(const held_piece& a, const held_piece& b) {
  return std::tie(a.members, a.parity, a.target, a.stripe, a.row, a.ranks) ==
         std::tie(b.members, b.parity, b.target, b.stripe, b.row, b.ranks);
}

} // namespace

bool is_given_again(const slots& words, std::size_t slot,
                    const std::function<const held_piece*(std::size_t)>& piece_in) {
  const auto word = words.word(slot);
  for (std::size_t other = 0; other < slots::count(); ++other) {
    const auto its = words.word(other);
    if (its.state != slot_state::ready || its.sequence <= word.sequence ||
        !same_state(words.snapshot(other), words.snapshot(slot)))
      continue;
    const auto *later = piece_in(other), *earlier = piece_in(slot);
    if (later != nullptr && earlier != nullptr && same_parity(*later, *earlier))
      return true;
  }
  return false;
}

} // namespace troupe::ckpt
