#include "ckpt/load/rebuild_plan.hpp"

#include "ckpt/arena/held_piece.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::ckpt {

namespace {

struct parity_at_rank {
  global_rank at = 0;
  const parity_seen* says = nullptr;
};

/// The nodes that hold pieces of each other, as their parities name them.
struct group {
  code by;
  std::vector<global_rank> ranks;

  friend bool operator<(const group& a, const group& b) {
    return std::tie(a.by.members, a.by.parity, a.ranks) <
           std::tie(b.by.members, b.by.parity, b.ranks);
  }
};

bool is_sound(const parity_seen& p, std::size_t world_size) {
  return check(p.by) && p.stripe < p.by.members && p.row < p.by.parity &&
         p.ranks.size() == p.by.members && p.bytes.size() == p.by.members &&
         p.crc32.size() == p.by.members &&
         std::all_of(p.ranks.begin(), p.ranks.end(),
                     [world_size](global_rank r) { return r < world_size; });
}

/// Whether the snapshots that are there still have the sizes that were summed.
bool fits(const parity_seen& p, global_rank lost, const snapshot_places& places) {
  for (std::uint32_t member = 0; member < p.by.members; ++member) {
    if (p.ranks[member] == lost)
      continue;
    const auto there = places.find(p.id, p.ranks[member]);
    if (there && piece_of(p.by, member, p.stripe) && there->bytes != p.bytes[member])
      return false;
  }
  return true;
}

std::map<group, std::vector<parity_at_rank>> groups_of(global_rank lost, const state_id& of,
                                                       const std::vector<rank_view>& ranks,
                                                       const snapshot_places& places) {
  std::map<group, std::vector<parity_at_rank>> found;
  for (global_rank at = 0; at < ranks.size(); ++at)
    for (const auto& p : ranks[at].parities)
      if (p.id == of && is_sound(p, ranks.size()) && fits(p, lost, places) &&
          std::find(p.ranks.begin(), p.ranks.end(), lost) != p.ranks.end())
        found[{p.by, p.ranks}].push_back({at, &p});
  return found;
}

/// What the parities say of a member's snapshot; nothing if they say nothing, or not the same.
std::optional<rebuilt_snapshot> said_of(std::uint32_t member, global_rank rank,
                                        const std::vector<parity_at_rank>& parities) {
  std::optional<rebuilt_snapshot> said;
  for (const auto& [at, p] : parities) {
    if (!piece_of(p->by, member, p->stripe))
      continue;
    if (said && (said->bytes != p->bytes[member] || said->crc32 != p->crc32[member]))
      return std::nullopt;
    said = {rank, p->bytes[member], p->crc32[member]};
  }
  return said;
}

/// One parity of each row of a stripe, all of the same snapshots; best those that the lost rank's
/// own node holds.
std::map<std::uint32_t, parity_at_rank> rows_of(std::uint32_t stripe, global_rank near,
                                                std::vector<parity_at_rank> parities) {
  std::stable_sort(parities.begin(), parities.end(),
                   [near](const parity_at_rank& a, const parity_at_rank& b) {
                     return (a.at != near) < (b.at != near);
                   });
  std::map<std::uint32_t, parity_at_rank> rows;
  for (const auto& one : parities) {
    if (one.says->stripe != stripe)
      continue;
    const auto* first = rows.empty() ? one.says : rows.begin()->second.says;
    if (one.says->bytes == first->bytes && one.says->crc32 == first->crc32)
      rows.emplace(one.says->row, one);
  }
  return rows;
}

/// How much of a parity was summed: as much as the longest piece.
std::uint64_t longest_piece(const parity_seen& p) {
  std::uint64_t longest = 0;
  for (std::uint32_t member = 0; member < p.by.members; ++member)
    if (const auto piece = piece_of(p.by, member, p.stripe))
      longest = std::max(longest, piece_in(p.by, p.bytes[member], *piece).bytes);
  return longest;
}

/// The sum that one piece of the lost snapshot is.
bool add_piece(rebuild_plan& into, const group& of, std::uint32_t stripe, std::uint32_t member,
               const std::vector<parity_at_rank>& parities, const state_id& id,
               const snapshot_places& places) {
  const auto piece = piece_of(of.by, member, stripe);
  if (!piece)
    return true;
  const auto rows = rows_of(stripe, of.ranks[member], parities);
  std::vector<bool> there(of.by.members), summed(of.by.parity);
  for (std::uint32_t m = 0; m < of.by.members; ++m)
    there[m] = m != member && places.find(id, of.ranks[m]).has_value();
  for (const auto& [row, one] : rows)
    summed[row] = true;
  const auto terms = rebuilt(of.by, stripe, member, there, summed);
  if (!terms)
    return false;
  const auto lost = piece_in(of.by, into.rebuilt.back().bytes, *piece);
  for (const auto& term : *terms) {
    transfer t;
    t.to = of.ranks[member];
    t.into = lost.from;
    t.times = term.times;
    std::uint64_t bytes = 0;
    if (term.parity) {
      const auto& [at, p] = rows.at(term.which);
      t.source = t.of = at;
      t.parity = transfer::parity_at{p->slot, p->sequence};
      t.begin = held_piece::bytes_before;
      bytes = longest_piece(*p);
    } else {
      t.of = of.ranks[term.which];
      const auto from = *places.find(id, t.of);
      t.source = from.at;
      const auto given = piece_in(of.by, from.bytes, *piece_of(of.by, term.which, stripe));
      t.begin = given.from;
      bytes = given.bytes;
    }
    t.end = t.begin + std::min(bytes, lost.bytes);
    if (t.begin < t.end)
      into.transfers.push_back(t);
  }
  return true;
}

} // namespace

std::optional<rebuild_plan> plan_rebuilding(global_rank lost, const state_id& of,
                                            const std::vector<rank_view>& ranks,
                                            const snapshot_places& places) {
  for (const auto& [by, parities] : groups_of(lost, of, ranks, places)) {
    const auto member = static_cast<std::uint32_t>(
        std::find(by.ranks.begin(), by.ranks.end(), lost) - by.ranks.begin());
    const auto said = said_of(member, lost, parities);
    if (!said)
      continue;
    rebuild_plan found{{*said}, {}};
    bool whole = true;
    for (std::uint32_t stripe = 0; whole && stripe < by.by.members; ++stripe)
      whole = add_piece(found, by, stripe, member, parities, of, places);
    if (whole)
      return found;
  }
  return std::nullopt;
}

} // namespace troupe::ckpt
