#include "runtime/os/keeper/keeper_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace troupe::os {

using kind = packet::kind;

keeper_core::effects keeper_core::begin(instant) {
  return {start_supervisor{}};
}

// ---- the supervisor ----

keeper_core::effects keeper_core::supervisor_started(instant now, pid_t pid) {
  effects out;
  supervisor_ = pid;
  supervisor_since_ = now;
  present_all(out);
  ++lives_;
  for (const int number : endings_asked_for_)
    out.push_back(send{about(kind::user_signal, 0, number)});
  return out;
}

void keeper_core::present_all(effects& out) {
  for (auto& [process, r] : table_) {
    r.owned = false;
    auto p = about(kind::present, process);
    p.pid = r.pid;
    p.label = r.label;
    p.is_store = r.is_store;
    out.push_back(send{p});
  }
  out.push_back(send{about(kind::presented, 0, lives_)});
}

keeper_core::effects keeper_core::supervisor_ended(instant now, const ports::exit_status& how) {
  effects out;
  supervisor_ = 0;
  starts_open_ = 0;
  sweep_until_.reset();
  sweeps_wanted_ = 0;
  store_wanted_.reset();
  if (exit_code_) {
    finished_ = true;
    out.push_back(finish{*exit_code_, {}});
    return out;
  }
  crashes_.push_back(now);
  while (crashes_.front() + limits::supervisor_crashes_within < now)
    crashes_.pop_front();
  if (crashes_.size() > limits::supervisor_crashes_max) {
    finished_ = true;
    out.push_back(
        finish{1, fmt::format("the node supervisor crashed {} times within {}, the last "
                              "time with {}; giving up",
                              crashes_.size(), in_words(limits::supervisor_crashes_within),
                              ports::to_string(how))});
    return out;
  }
  // One that worked for a while had bad luck. From the second in a row on that did not it waits
  // longer each time.
  const bool worked = lives_ > 0 && now - supervisor_since_ >= limits::supervisor_works_after;
  hasty_ = worked ? 1 : std::min<std::size_t>(hasty_ + 1, limits::supervisor_crashes_max);
  restart_at_ = now;
  if (hasty_ > 1)
    *restart_at_ += std::min<duration>(limits::supervisor_restart_first * (1 << (hasty_ - 2)),
                                       limits::supervisor_restart_max);
  for (auto& e : tick(now))
    out.push_back(std::move(e));
  return out;
}

keeper_core::effects keeper_core::user_signal(instant, int number) {
  effects out;
  const bool ending = ending_signals_.count(number) != 0;
  // The second wish is to wait no longer; more of them say no more.
  if (ending && endings_asked_for_.size() < 2)
    endings_asked_for_.push_back(number);
  if (supervisor_ != 0)
    out.push_back(send{about(kind::user_signal, 0, number)});
  return out;
}

keeper_core::effects keeper_core::tick(instant now) {
  effects out;
  if (restart_at_ && now >= *restart_at_) {
    restart_at_.reset();
    out.push_back(start_supervisor{});
  }
  if (sweep_until_ && now >= *sweep_until_)
    finish_sweep(out);
  return out;
}

std::optional<instant> keeper_core::next_wakeup() const {
  if (restart_at_ && sweep_until_)
    return std::min(*restart_at_, *sweep_until_);
  return restart_at_ ? restart_at_ : sweep_until_;
}

// ---- processes ----

keeper_core::effects keeper_core::received(instant now, const packet& p) {
  effects out;
  switch (p.what) {
  case kind::starting:
    ++starts_open_;
    break;
  case kind::started:
    add(p, p.pid, false);
    start_closed(out);
    break;
  case kind::not_started:
    start_closed(out);
    break;
  case kind::adopted:
    if (const auto found = table_.find(p.process); found != table_.end()) {
      found->second.owned = true;
      if (found->second.how)
        tell_end(out, p.process, found->second);
    }
    break;
  case kind::signal:
    if (auto* r = alive(p.process)) {
      r->killed = r->killed || p.number == SIGKILL;
      out.push_back(signal{r->pid, p.number, true});
    }
    break;
  case kind::sweep:
    ++sweeps_wanted_;
    sweep_if_idle(out, now);
    break;
  case kind::open_store:
    store_wanted_ = p;
    start_store_if_free(out);
    break;
  case kind::over:
    exit_code_ = p.number;
    break;
  default:
    break;
  }
  return out;
}

void keeper_core::add(const packet& p, pid_t pid, bool is_store) {
  table_[p.process] = record{pid, p.label, is_store, true, false, {}};
}

keeper_core::effects keeper_core::store_started(instant, const packet& order, pid_t pid) {
  add(order, pid, true);
  return {};
}

keeper_core::record* keeper_core::alive(std::uint64_t process) {
  const auto found = table_.find(process);
  return found == table_.end() || found->second.how ? nullptr : &found->second;
}

/// Who has ended meanwhile, or is a stray after all, is found by looking.
void keeper_core::start_closed(effects& out) {
  if (starts_open_ > 0 && --starts_open_ == 0)
    out.push_back(look{});
}

keeper_core::effects keeper_core::child_ended(instant, pid_t pid, const ports::exit_status& how) {
  effects out;
  inherited_.erase(pid);
  if (ending_.erase(pid) != 0 && ending_.empty() && sweep_until_)
    out.push_back(look{});
  for (auto& [process, r] : table_) {
    if (r.pid != pid || r.how)
      continue;
    r.how = how;
    if (r.owned && supervisor_ != 0)
      tell_end(out, process, r);
    else if (sweep_until_)
      out.push_back(look{});
  }
  start_store_if_free(out);
  return out;
}

void keeper_core::start_store_if_free(effects& out) {
  for (const auto& [process, r] : table_)
    if (r.is_store && r.killed && !r.how)
      return;
  if (store_wanted_)
    out.push_back(start_store{*std::exchange(store_wanted_, std::nullopt)});
}

void keeper_core::tell_end(effects& out, std::uint64_t process, const record& r) const {
  auto p = about(kind::ended, process, r.how->number);
  p.signalled = r.how->signalled;
  out.push_back(send{p});
}

std::vector<pid_t> keeper_core::awaited() const {
  std::vector<pid_t> pids(ending_.begin(), ending_.end());
  for (const auto& [process, r] : table_)
    if (!r.how)
      pids.push_back(r.pid);
  if (supervisor_ != 0)
    pids.push_back(supervisor_);
  return pids;
}

// ---- sweeping ----

void keeper_core::sweep_if_idle(effects& out, instant now) {
  if (sweep_until_)
    return;
  sweep_until_ = now + limits::kill_within;
  swept_.clear();
  group_killed_ = false;
  out.push_back(look{});
}

/// One round. What the killed leave behind is ours by the time their end is heard of, and meets the
/// next round. Where nobody in the group is to live, all of them go at once: who forks as fast as
/// he is killed does not get away.
keeper_core::effects keeper_core::children(instant, const std::set<pid_t>& pids, bool outdated) {
  effects out;
  if (!sweep_until_ || starts_open_ > 0)
    return out;
  std::set<pid_t> spared = inherited_;
  spared.insert(supervisor_);
  bool waiting = false;
  bool somebody_stays = false;
  for (const auto& [process, r] : table_) {
    if (r.how)
      continue;
    spared.insert(r.pid);
    // Of an earlier supervisor, and nobody wanted it.
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

void keeper_core::finish_sweep(effects& out) {
  sweep_until_.reset();
  for (auto r = table_.begin(); r != table_.end();)
    r = r->second.how ? table_.erase(r) : std::next(r);
  for (; sweeps_wanted_ > 0; --sweeps_wanted_) {
    out.push_back(send{about(kind::swept, 0, static_cast<std::int32_t>(swept_.size()))});
    swept_.clear();
  }
}

} // namespace troupe::os
