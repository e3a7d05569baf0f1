#include "worker/held_in.hpp"

#include "ckpt/erasure/stripes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::ckpt {

namespace {

bool sound(const held_piece& found) {
  const code c{found.members, found.parity};
  return found.magic == held_piece::magic_value && check(c) && found.stripe < c.members &&
         found.row < c.parity && found.target == target(c, found.stripe, found.row);
}

/// Of the pieces that were added to it.
std::uint64_t longest_in(const held_piece& found) {
  const code c{found.members, found.parity};
  std::uint64_t longest = 0;
  for (std::uint32_t member = 0; member < c.members; ++member)
    if (const auto piece = piece_of(c, member, found.stripe))
      longest = std::max(longest, piece_in(c, found.bytes[member], *piece).bytes);
  return longest;
}

} // namespace

result<held_piece> held_in(const slots& words, os::shared_memory& memory, std::size_t slot,
                           std::uint64_t sequence) {
  const auto is_there = [&] {
    const auto now = words.word(slot);
    return now.state == slot_state::ready && now.sequence == sequence;
  };
  if (!is_there())
    return failure(errc::invalid, fmt::format("the piece in slot {} is gone", slot));
  // Its holder may have made it larger since this was mapped.
  if (const auto seen = memory.follow(); !seen)
    return tl::make_unexpected(seen.error());
  held_piece found;
  if (memory.bytes() >= held_piece::bytes_before)
    std::memcpy(&found, memory.data(), sizeof found);
  const auto bytes = words.snapshot(slot).bytes;
  if (!is_there())
    return failure(errc::invalid, fmt::format("the piece in slot {} is gone", slot));
  if (!sound(found))
    return failure(errc::invalid, fmt::format("slot {} holds no piece of others' images", slot));
  const auto longest = longest_in(found);
  const auto there = std::min(bytes, memory.bytes());
  if (there < held_piece::bytes_before || there - held_piece::bytes_before < longest)
    return failure(errc::invalid,
                   fmt::format("the piece in slot {} has {} bytes, less than {} of images", slot,
                               there, longest));
  return found;
}

} // namespace troupe::ckpt
