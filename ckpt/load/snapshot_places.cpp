#include "ckpt/load/snapshot_places.hpp"

namespace troupe::ckpt {

snapshot_places::snapshot_places(const std::vector<rank_view>& ranks) {
  for (global_rank at = 0; at < ranks.size(); ++at) {
    if (!ranks[at].holds)
      continue;
    for (const auto& s : ranks[at].memory) {
      const auto [found, is_first] = all_.emplace(std::pair(s.id, s.of), place{at, s.bytes});
      if (!is_first && s.of == at)
        found->second = {at, s.bytes};
    }
  }
}

std::optional<snapshot_places::place> snapshot_places::find(const state_id& id,
                                                            global_rank of) const {
  const auto found = all_.find({id, of});
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace troupe::ckpt
