#include "tests/sim/copies.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::sim {

namespace {

constexpr duration told_after = 1ms;

} // namespace

void copies::give(const host_ptr& launcher, const ckpt::snapshot_to_copy& snapshot,
                  std::function<void(result<void>)> done) {
  auto& g = groups_[key_of(snapshot)];
  g.members = static_cast<std::uint32_t>(snapshot.by.members.size());
  g.parity = snapshot.by.parity;
  for (const auto& m : snapshot.by.members)
    if (present_.count(m.address) == 0)
      return done(
          failure(errc::closed, fmt::format("rank {} at {}: no node answers", m.rank, m.address)));
  if (g.whole)
    return done({}); // by one that crashed since
  g.given[launcher->name()] = {launcher, snapshot, std::move(done)};
  if (g.given.size() < g.members)
    return;
  g.whole = true;
  world_.write("-", fmt::format("ckpt   g{} step {} is held by others", snapshot.made_by.value,
                                snapshot.step));
  for (const auto& entry : g.given)
    entry.second.launcher->call_in(told_after, [each = entry.second] { each.done({}); });
}

void copies::launcher_ended(const std::string& node, bool memory_is_lost) {
  present_.erase(node);
  for (auto& [which, g] : groups_) {
    if (g.whole && memory_is_lost)
      g.lost.insert(node);
    const auto own = g.given.find(node);
    if (g.whole || g.given.empty())
      continue;
    if (own != g.given.end())
      g.given.erase(own);
    refuse(g, node);
  }
}

void copies::refuse(group& g, const std::string& gone) {
  for (const auto& entry : std::exchange(g.given, {}))
    for (const auto& m : entry.second.snapshot.by.members)
      if (m.address == gone)
        entry.second.launcher->call_in(told_after, [each = entry.second, rank = m.rank, gone] {
          each.done(failure(errc::closed,
                            fmt::format("rank {} at {}: the connection was closed", rank, gone)));
        });
}

bool copies::can_be_rebuilt(const ckpt::snapshot_to_copy& snapshot) const {
  const auto found = groups_.find(key_of(snapshot));
  return found != groups_.end() && found->second.whole &&
         found->second.lost.size() <= found->second.parity;
}

} // namespace troupe::sim
