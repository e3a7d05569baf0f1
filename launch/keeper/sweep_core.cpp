#include "launch/keeper/sweep_core.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/rare.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::launch {

/// Looked at after every event, so that the event that broke it is the one that is named.
sweep_core::effects sweep_core::checked(effects out) const {
  invariant(phase_ != phase::idle || !tell_at_, "a line about processes that no sweep waits for");
  invariant(phase_ != phase::quiet || quiet_until_ <= kill_at_, "killed before it is asked");
  invariant(std::all_of(killed_.begin(), killed_.end(),
                        [this](pid_t pid) { return managers_.count(pid) == 0; }),
            "a shared-memory manager is swept as any process");
  return out;
}

// ---- orders ----

/// The first order sets the times, a further one only shortens them: an end that was wanted soon is
/// not put off by one that was wanted later.
sweep_core::effects sweep_core::wanted(instant now, duration quiet, duration within) {
  effects out;
  const bool first = phase_ == phase::idle;
  TROUPE_RARE_IF(!first, "keeper: a sweep is wanted during another one");
  if (first) {
    group_killed_ = false;
    counted_asked_.clear();
    counted_killed_.clear();
    waiting_.clear();
    tell_at_ = now + limits::left_told_after;
  }
  const auto sooner = [&](instant& at, duration d) {
    at = first ? now + d : std::min(at, now + d);
  };
  sooner(kill_at_, within);
  sooner(quiet_until_, std::min(quiet, within));
  if (now >= kill_at_ && phase_ != phase::killing)
    become_killing(now);
  else if (now >= quiet_until_ && (phase_ == phase::idle || phase_ == phase::quiet))
    become_asking(now);
  else if (first)
    phase_.become(phase::quiet);
  out.push_back(look{});
  return checked(std::move(out));
}

sweep_core::effects sweep_core::hurry(instant now) {
  effects out;
  if (phase_ == phase::quiet) {
    TROUPE_RARE("keeper: the user wants an end while what workers left behind goes on");
    become_asking(now);
    out.push_back(look{});
  }
  return checked(std::move(out));
}

sweep_core::effects sweep_core::kill_now(instant now) {
  effects out;
  if (phase_ == phase::quiet || phase_ == phase::asking) {
    become_killing(now);
    out.push_back(look{});
  }
  return checked(std::move(out));
}

/// The signalled ones stay known: the next sweep asks no process twice.
void sweep_core::cancel() {
  if (phase_ != phase::idle)
    phase_.become(phase::idle);
  tell_at_.reset();
}

// ---- rounds ----

/// One round. What those that have ended leave behind is ours by the time their end is heard of,
/// and meets the next round.
sweep_core::effects sweep_core::seen(instant now, const view& v) {
  effects out;
  forget_the_gone(v);
  if (phase_ == phase::idle)
    return checked(std::move(out));
  bool manager_holds = false;
  waiting_.clear();
  for (const auto& p : v.left) {
    // One that was killed before it became a manager (exec) goes as it was seen first.
    if (p.unlinks_memory && killed_.count(p.pid) == 0) {
      managers_.emplace(p.pid, manager{});
      manager_holds = manager_holds || p.holds_resource;
      continue;
    }
    managers_.erase(p.pid);
    waiting_.push_back(p);
    if (phase_ == phase::asking)
      ask(out, p);
    else if (phase_ == phase::killing)
      kill(out, p);
  }
  // The group has all that is left in it, and what is being forked. A manager in it that has time
  // is spared as long as one process after the other can be killed.
  const bool outrun = now >= kill_at_ + limits::outrun_after;
  const bool last_resort =
      phase_ == phase::killing && !waiting_.empty() && (managers_.empty() || outrun);
  const bool nothing = waiting_.empty() && managers_.empty() && !v.outdated && !v.awaits_other;
  if (v.group_is_free && !group_killed_ && (last_resort || nothing)) {
    group_killed_ = true;
    out.push_back(kill_group{});
    return checked(std::move(out));
  }
  if (v.outdated) {
    out.push_back(look{});
  } else if (waiting_.empty() && !v.awaits_other) {
    give_managers_time(now);
    TROUPE_RARE_IF(manager_holds, "keeper: a shared-memory manager holds what others may want");
    if (!manager_holds)
      finish(out);
  }
  return checked(std::move(out));
}

void sweep_core::forget_the_gone(const view& v) {
  std::set<pid_t> there;
  for (const auto& p : v.left)
    there.insert(p.pid);
  const auto prune = [&there](std::set<pid_t>& pids) {
    for (auto p = pids.begin(); p != pids.end();)
      p = there.count(*p) == 0 ? pids.erase(p) : std::next(p);
  };
  prune(asked_);
  prune(killed_);
  for (auto m = managers_.begin(); m != managers_.end();)
    m = there.count(m->first) == 0 ? managers_.erase(m) : std::next(m);
}

/// A process that leads a group has its children in it, which are to hear of it as well. SIGCONT,
/// since a stopped process does not see a signal before it continues.
void sweep_core::ask(effects& out, const left_process& p) {
  if (p.asked || !asked_.insert(p.pid).second)
    return;
  out.push_back(signal{p.pid, SIGTERM, p.leads_group()});
  out.push_back(signal{p.pid, SIGCONT, p.leads_group()});
  if (!p.is_worker)
    counted_asked_.insert(p.pid);
}

void sweep_core::kill(effects& out, const left_process& p) {
  if (!killed_.insert(p.pid).second)
    return;
  out.push_back(signal{p.pid, SIGKILL, p.is_worker});
  if (!p.is_worker)
    counted_killed_.insert(p.pid);
}

/// The ends of those that are our children come one by one, as ever.
sweep_core::effects sweep_core::group_killed(const std::vector<pid_t>& strangers) {
  counted_killed_.insert(strangers.begin(), strangers.end());
  return checked({look{}});
}

// ---- time ----

sweep_core::effects sweep_core::tick(instant now) {
  effects out;
  for (auto& [pid, m] : managers_)
    if (m.kill_at && now >= *m.kill_at && !std::exchange(m.killed, true))
      out.push_back(signal{pid, SIGKILL, false});
  if (phase_ == phase::quiet && now >= quiet_until_) {
    become_asking(now);
    out.push_back(look{});
  }
  if (phase_ == phase::asking && now >= kill_at_) {
    become_killing(now);
    out.push_back(look{});
  } else if (phase_ == phase::killing && now >= kill_at_ + limits::kill_within) {
    // A process that the kernel holds must not keep the next generation from starting for ever.
    TROUPE_RARE("keeper: a sweep ends beside a process that the kernel holds");
    give_managers_time(now);
    finish(out);
  }
  if (tell_at_ && now >= *tell_at_ && !waiting_.empty()) {
    tell_at_.reset();
    const auto left = [now](instant at) { return std::max(at - now, duration{}); };
    out.push_back(tell_waiting{waiting_, phase_ == phase::quiet ? left(quiet_until_) : duration{},
                               left(kill_at_)});
  }
  return checked(std::move(out));
}

std::optional<instant> sweep_core::next_wakeup() const {
  std::optional<instant> first;
  const auto at = [&first](instant one) { first = first ? std::min(*first, one) : one; };
  for (const auto& [pid, m] : managers_)
    if (m.kill_at && !m.killed)
      at(*m.kill_at);
  if (phase_ == phase::quiet)
    at(quiet_until_);
  if (phase_ == phase::asking)
    at(kill_at_);
  if (phase_ == phase::killing)
    at(kill_at_ + limits::kill_within);
  if (tell_at_ && !waiting_.empty())
    at(*tell_at_);
  return first;
}

// ---- transitions ----

void sweep_core::become_asking(instant now) {
  phase_.become(phase::asking);
  quiet_until_ = std::min(quiet_until_, now);
}

/// What it was given is over, whenever that would have been.
void sweep_core::become_killing(instant now) {
  phase_.become(phase::killing);
  kill_at_ = std::min(kill_at_, now);
}

void sweep_core::give_managers_time(instant now) {
  for (auto& [pid, m] : managers_)
    if (!m.kill_at)
      m.kill_at = now + limits::memory_unlinked_within;
}

void sweep_core::finish(effects& out) {
  phase_.become(phase::idle);
  tell_at_.reset();
  for (const pid_t pid : counted_killed_)
    counted_asked_.erase(pid);
  out.push_back(finished{counted_asked_.size(), counted_killed_.size()});
}

} // namespace troupe::launch
