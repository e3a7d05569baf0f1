#include "launch/keeper/keeper_core.hpp"

#include <algorithm>
#include <csignal>

namespace troupe::launch {

void keeper_core::sweep_if_idle(effects& out, instant now) {
  if (sweep_until_)
    return;
  sweep_until_ = now + limits::kill_within;
  swept_.clear();
  group_killed_ = false;
  out.push_back(look{});
}

/// One round. What the killed leave behind is ours by the time their end is heard of, and meets the
/// next round. Where no process in the group is to live, all of them go at once: a process that
/// forks as fast as it is killed does not get away.
keeper_core::effects keeper_core::children(instant, const std::set<pid_t>& pids, bool outdated) {
  effects out;
  if (!sweep_until_ || starts_open_ > 0)
    return out;
  std::set<pid_t> spared = inherited_;
  spared.insert({supervisor_, orphan_reaper_});
  bool waiting = false;
  bool somebody_stays = false;
  for (const auto& [process, r] : table_) {
    if (r.how)
      continue;
    spared.insert(r.pid);
    // Started under an earlier supervisor, and the present one has not adopted it.
    if (!r.owned) {
      out.push_back(signal{r.pid, SIGKILL, true});
      waiting = true;
    } else if (!r.is_store) {
      somebody_stays = true;
    }
  }
  for (const pid_t pid : pids) {
    if (spared.count(pid) != 0 || !ending_.insert(pid).second)
      continue;
    out.push_back(signal{pid, SIGKILL, false});
    swept_.insert(pid);
  }
  if (grouped_ && !somebody_stays && !std::exchange(group_killed_, true))
    out.push_back(kill_group{});
  else if (outdated)
    out.push_back(look{});
  else if (ending_.empty() && !waiting)
    finish_sweep(out);
  return out;
}

keeper_core::effects keeper_core::group_killed(instant, const std::vector<pid_t>& members) {
  std::set<pid_t> known;
  for (const auto& [process, r] : table_)
    if (!r.how)
      known.insert(r.pid);
  for (const pid_t pid : members)
    if (known.count(pid) == 0)
      swept_.insert(pid);
  return {look{}};
}

/// Each sweep that was asked for has its answer, since a promise of the agent's rests on each.
void keeper_core::finish_sweep(effects& out) {
  sweep_until_.reset();
  for (auto r = table_.begin(); r != table_.end();)
    r = r->second.how ? table_.erase(r) : std::next(r);
  for (; sweeps_wanted_ > 0; --sweeps_wanted_) {
    out.push_back(send{messages::local<messages::StraysSwept>(said_by, [this](auto b) {
                         b.setKilled(static_cast<std::uint32_t>(swept_.size()));
                       }).any()});
    swept_.clear();
  }
}

} // namespace troupe::launch
