#include "ckpt/arena/place_id.hpp"
#include "ckpt/copies/target_core.hpp"

#include <algorithm>

/// Which pieces stay for which place.
namespace troupe::ckpt {

bool target_core::open::may_replace(const slot_snapshot& held) const {
  const step_of is{held.generation, held.step, place_in(held.save)};
  return is.place == given.place && !(is == given) && !(is == whole);
}

bool target_core::open::may_displace(const slot_snapshot& held) const {
  return place_in(held.save) != given.place;
}

void target_core::note_whole(local_rank local, const step_of& named) {
  auto& all = whole_.at(local);
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const step_of& one) { return one.place == named.place; }),
            all.end());
  all.push_back(named);
  if (all.size() > slots::count())
    all.erase(all.begin());
}

target_core::step_of target_core::whole_at(local_rank local, std::uint64_t place) const {
  for (const auto& one : whole_.at(local))
    if (one.place == place)
      return one;
  return {};
}

} // namespace troupe::ckpt
