#include "ckpt/arena/slots.hpp"

#include <algorithm>
#include <utility>

/// What goes when the snapshots of several places do not all fit.
namespace troupe::ckpt {

/// A place's last one is what a load would take: its rollback point, or what it has beyond that. If
/// it is not known what all ranks have, that may be any.
surplus slots::kind_of(std::size_t slot, const std::function<bool(place_id)>& is_open) const {
  const auto its = at(place_of(slot));
  const auto open = is_open(its.place());
  const auto common = its.rollback_point();
  if (common && *common != slot && its.newest() != slot)
    return open ? surplus::of_open : surplus::of_idle;
  const auto on_disk = finalized(slot, word(slot).sequence);
  if (on_disk && on_disk->succeeded)
    return open ? surplus::open_on_disk : surplus::idle_on_disk;
  return open ? surplus::open_in_memory : surplus::idle_in_memory;
}

std::optional<slots::evicted> slots::evict(surplus at_most,
                                           const std::function<bool(place_id)>& is_open) {
  std::vector<std::pair<surplus, std::size_t>> found;
  for (const auto slot : by_age(whose::any))
    if (!own(slot))
      found.emplace_back(kind_of(slot, is_open), slot);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [what, slot] : found) {
    if (what > at_most)
      break;
    const evicted one{slot, what, place_of(slot), snapshot(slot).step};
    const auto gone = change(slot, [this, at_most, slot = slot](slot_word& w) {
      // What only stays for other ranks goes with the rest of its place, and not before.
      if (w.state != slot_state::ready || w.readers != 0 || w.mapped || w.persist_requested ||
          w.copied || (stays(slot, w) && at_most <= surplus::of_open))
        return false;
      w = {slot_state::empty, false, false, 0, w.sequence};
      return true;
    });
    if (gone)
      return one;
  }
  return std::nullopt;
}

bool slots::others_are_busy() const {
  for (std::size_t i = 0; i < count(); ++i)
    if (const auto w = word(i); w.state == slot_state::ready && !own(i) &&
                                (w.readers != 0 || w.persist_requested || w.copied))
      return true;
  return false;
}

} // namespace troupe::ckpt
