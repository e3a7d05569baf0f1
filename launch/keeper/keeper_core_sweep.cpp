// What of a sweep the keeper alone knows: which children are strangers, and to whom it is told.

#include "launch/keeper/keeper_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace troupe::launch {

using namespace messages;

namespace {

duration from_us(std::uint64_t us) {
  return std::chrono::microseconds(us);
}

std::uint64_t to_us(duration d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

} // namespace

void keeper_core::begin_sweep(effects& out, instant now, const msg<SweepWanted>& m) {
  ++sweeps_wanted_;
  auto order = m.read();
  take_over(out, sweep_.wanted(now, from_us(order->getQuietUs()), from_us(order->getWithinUs())));
  if (endings_asked_for_.size() > 1)
    take_over(out, sweep_.kill_now(now));
}

/// One round. A worker that was started under an earlier supervisor, and that the present one has
/// not adopted, is left behind like any other; a store has nothing to finish.
keeper_core::effects keeper_core::children(instant now, const std::vector<left_process>& listed,
                                           bool outdated) {
  effects out;
  if (starts_open_ > 0)
    return out;
  sweep_core::view v{{}, outdated, false, grouped_};
  for (const auto& [process, r] : table_) {
    if (r.how)
      continue;
    if (r.owned) {
      v.group_is_free = v.group_is_free && r.is_store;
    } else if (r.is_store) {
      // The next one may want its port.
      v.awaits_other = true;
      if (sweep_.under_way())
        out.push_back(signal{r.pid, SIGKILL, true});
    } else {
      v.left.push_back({r.pid, r.pid, "a worker", r.asked, true, false, false});
    }
  }
  for (auto p : listed) {
    if (inherited_.count(p.pid) != 0)
      continue;
    p.asked = was_asked(p.group);
    v.left.push_back(std::move(p));
  }
  take_over(out, sweep_.seen(now, v));
  if (finish_by_)
    finish_when_unlinked(out, now);
  return out;
}

bool keeper_core::was_asked(pid_t group) const {
  return std::any_of(table_.begin(), table_.end(),
                     [group](const auto& p) { return p.second.pid == group && p.second.asked; });
}

keeper_core::effects keeper_core::group_killed(instant, const std::vector<pid_t>& members) {
  std::vector<pid_t> strangers;
  for (const pid_t pid : members)
    if (std::none_of(table_.begin(), table_.end(),
                     [pid](const auto& p) { return p.second.pid == pid && !p.second.how; }))
      strangers.push_back(pid);
  effects out;
  take_over(out, sweep_.group_killed(strangers));
  return out;
}

void keeper_core::take_over(effects& out, const sweep_core::effects& wanted) {
  for (const auto& e : wanted)
    std::visit(
        [&](const auto& what) {
          using T = std::decay_t<decltype(what)>;
          if constexpr (std::is_same_v<T, sweep_core::finished>)
            finish_sweep(out, what);
          else if constexpr (std::is_same_v<T, sweep_core::tell_waiting>)
            tell_waiting(out, what);
          else
            out.push_back(what);
        },
        e);
}

void keeper_core::tell_waiting(effects& out, const sweep_core::tell_waiting& what) const {
  std::string names;
  const auto& all = what.processes;
  const auto named = std::min(all.size(), limits::left_named_max);
  for (std::size_t i = 0; i < named; ++i)
    names += fmt::format("{}{} (pid {})", i == 0 ? "" : ", ", all[i].name, all[i].pid);
  if (named < all.size())
    names += fmt::format(" and {} more", all.size() - named);
  out.push_back(send{local<StraysAwaited>(said_by, [&](auto b) {
                       b.setProcesses(names);
                       b.setCount(static_cast<std::uint32_t>(all.size()));
                       b.setQuietUs(to_us(what.quiet_left));
                       b.setLeftUs(to_us(what.left));
                     }).any()});
}

/// Each sweep that was asked for has its answer, since a promise of the agent's rests on each.
void keeper_core::finish_sweep(effects& out, const sweep_core::finished& what) {
  for (auto r = table_.begin(); r != table_.end();)
    r = r->second.how ? table_.erase(r) : std::next(r);
  auto told = what;
  for (; sweeps_wanted_ > 0; --sweeps_wanted_) {
    out.push_back(send{local<StraysSwept>(said_by, [&told](auto b) {
                         b.setEnded(static_cast<std::uint32_t>(told.ended));
                         b.setKilled(static_cast<std::uint32_t>(told.killed));
                       }).any()});
    told = {};
  }
}

void keeper_core::finish_when_unlinked(effects& out, instant now) {
  const bool first = !finish_by_;
  if (first) {
    sweep_.give_managers_time(now);
    finish_by_ = now + limits::memory_unlinked_within + limits::kill_within;
  }
  const bool waits = sweep_.managers_left() && now < *finish_by_;
  if (waits && first)
    out.push_back(look{});
  if (finished_ || waits)
    return;
  finished_ = true;
  out.push_back(finish{*exit_code_, {}});
}

} // namespace troupe::launch
