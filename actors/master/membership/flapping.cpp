#include "actors/master/membership/flapping.hpp"

#include "actors/limits.hpp"
#include "runtime/base/limits.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

constexpr unsigned losses_counted_max = 30;

duration wait_after(unsigned losses) {
  if (losses < limits::losses_free)
    return duration::zero();
  const auto doubled = std::min(losses - limits::losses_free, 16u);
  return std::min<duration>(limits::rejoin_after_first * (1u << doubled), limits::rejoin_after_max);
}

} // namespace

unsigned flapping::counted(const record& r, instant now) {
  const auto halvings = (now - r.last) / limits::losses_halve_every;
  return halvings > 31 ? 0 : r.losses >> halvings;
}

void flapping::lost(instant now, const node_name& node) {
  if (nodes_.size() >= limits::nodes_max && !nodes_.count(node))
    forget(now);
  auto& r = nodes_[node];
  r.losses = std::min(counted(r, now) + 1, losses_counted_max);
  r.last = now;
}

duration flapping::must_wait(instant now, const node_name& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end())
    return duration::zero();
  // What was held against it when it was lost: time that passes is waited for, not forgiven twice.
  return std::max(wait_after(found->second.losses) - (now - found->second.last), duration::zero());
}

/// Those of whom nothing is held against any more; if that does not help, the one that was lost
/// least recently.
void flapping::forget(instant now) {
  for (auto at = nodes_.begin(); at != nodes_.end();)
    at = counted(at->second, now) == 0 ? nodes_.erase(at) : std::next(at);
  if (nodes_.size() < limits::nodes_max)
    return;
  nodes_.erase(std::min_element(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) {
    return a.second.last < b.second.last;
  }));
}

} // namespace troupe::actors
