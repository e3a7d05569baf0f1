#include "actors/master/membership/flapping.hpp"

#include "actors/limits.hpp"
#include "runtime/base/limits.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Bounded, so that also the worst node is forgiven after a few quiet minutes.
constexpr unsigned losses_counted_max = 30;

/// The first losses are free: one node may well be lost twice in an hour of bad network.
duration wait_after(unsigned losses) {
  if (losses < limits::losses_free)
    return duration::zero();
  // The bound keeps the shift in range; `rejoin_after_max` ends the doubling long before.
  const auto doubled = std::min(losses - limits::losses_free, 16u);
  return std::min<duration>(limits::rejoin_after_first * (1u << doubled), limits::rejoin_after_max);
}

} // namespace

/// Halved when it is asked and not by a timer: a node that is not heard of costs nothing.
unsigned flapping::counted(const record& r, instant now) {
  const auto halvings = (now - r.last) / limits::losses_halve_every;
  // A shift by the width of the type is undefined.
  return halvings > 31 ? 0 : r.losses >> halvings;
}

/// The names of a job are few, but names may also be made up; so only so many are remembered.
void flapping::lost(instant now, const node_name& node) {
  if (nodes_.size() >= limits::nodes_max && !nodes_.count(node))
    forget(now);
  auto& r = nodes_[node];
  // What time has forgiven is taken off now, so that a loss a minute never adds up.
  r.losses = std::min(counted(r, now) + 1, losses_counted_max);
  r.last = now;
}

/// Asked at each hello, so it changes nothing: a node that dials early is not punished for it.
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
