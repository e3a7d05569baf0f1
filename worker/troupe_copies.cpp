#include "ckpt/erasure/stripes.hpp"
#include "worker/answer.hpp"
#include "worker/process_arena.hpp"
#include "worker/troupe_ckpt.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::ckpt;

static_assert(TROUPE_GROUP_MEMBERS == slot_group::members_max &&
              TROUPE_GROUP_MEMBERS == code::members_max);
static_assert(TROUPE_HELD_BEFORE == held_piece::bytes_before);

namespace {

result<slot_group> group_of(const troupe_group& said) {
  if (const auto checked = check(code{said.members, said.parity}); !checked)
    return tl::make_unexpected(checked.error());
  if (said.me >= said.members)
    return failure(errc::invalid, fmt::format("member {} of a group of {}", said.me, said.members));
  slot_group by;
  by.members = said.members;
  by.parity = said.parity;
  by.me = said.me;
  by.within_ms = said.within_ms;
  std::copy_n(said.ranks, said.members, by.ranks.begin());
  for (std::uint32_t member = 0; member < said.members; ++member) {
    const std::string_view address(said.addresses[member]);
    if (address.empty() || address.size() >= by.addresses[member].size())
      return failure(errc::invalid,
                     fmt::format("the address of rank {}'s node has 1 to {} bytes, not {}",
                                 said.ranks[member], by.addresses[member].size() - 1,
                                 address.size()));
    std::copy(address.begin(), address.end(), by.addresses[member].begin());
  }
  return by;
}

} // namespace

int troupe_request_copies(troupe_arena* arena, uint64_t* slot, const troupe_group* by, char* why,
                          size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto group = group_of(*by);
    if (!group)
      return tl::make_unexpected(group.error());
    const auto named = *slot == TROUPE_LAST_SAVE ? std::nullopt : std::optional<std::size_t>(*slot);
    const auto requested = arena->own->request_copies(named, *group);
    if (!requested)
      return tl::make_unexpected(requested.error());
    *slot = *requested;
    return {};
  });
}

int troupe_copies_finalized(troupe_arena* arena, uint64_t slot, uint64_t sequence,
                            uint64_t within_ms, char* why, size_t why_bytes) {
  return finalized(*arena, slot, sequence, within_ms, purpose::copies, why, why_bytes);
}

int troupe_set_replica_base(troupe_arena* arena, uint64_t sequence, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->set_replica_base(sequence); });
}

uint64_t troupe_piece_bytes(uint32_t members, uint32_t parity, uint64_t snapshot_bytes) {
  const code c{members, parity};
  return check(c) ? piece_bytes(c, snapshot_bytes) : 0;
}

int32_t troupe_piece_of(uint32_t members, uint32_t parity, uint32_t member, uint32_t stripe) {
  const code c{members, parity};
  if (!check(c) || member >= members || stripe >= members)
    return -1;
  const auto piece = piece_of(c, member, stripe);
  return piece ? static_cast<int32_t>(*piece) : -1;
}

int32_t troupe_target(uint32_t members, uint32_t parity, uint32_t stripe, uint32_t row) {
  const code c{members, parity};
  if (!check(c) || stripe >= members || row >= parity)
    return -1;
  return static_cast<int32_t>(target(c, stripe, row));
}

void troupe_accumulate(void* into, const void* from, uint64_t bytes, uint32_t times) {
  accumulate(static_cast<char*>(into), static_cast<const char*>(from), bytes,
             static_cast<std::uint8_t>(times));
}

uint32_t troupe_crc32(uint32_t before, const void* bytes, uint64_t count) {
  return count == 0 ? before : libdeflate_crc32(before, bytes, count);
}
