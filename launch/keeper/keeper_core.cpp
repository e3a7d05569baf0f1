#include "launch/keeper/keeper_core.hpp"

#include "messages/conversations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::launch {

using namespace messages;

namespace {

keeper_core::send user_signalled(int number) {
  return {local<UserSignal>(keeper_core::said_by, [number](auto b) { b.setSignal(number); }).any()};
}

} // namespace

/// The orphan reaper first: from the first worker on a killed keeper must leave nothing.
keeper_core::effects keeper_core::begin(instant) {
  if (reaps_orphans_)
    return {start_orphan_reaper{}, start_supervisor{}};
  return {start_supervisor{}};
}

// ---- the supervisor ----

keeper_core::effects keeper_core::supervisor_started(instant now, pid_t pid) {
  effects out;
  supervisor_ = pid;
  supervisor_since_ = now;
  supervisor_fork_ = {};
  last_words_.clear();
  misunderstood_ = false;
  present_all(out);
  ++lives_;
  for (const int number : endings_asked_for_)
    out.push_back(user_signalled(number));
  return out;
}

/// Without a supervisor nothing notices failures, but training goes on: that is worth a wait.
keeper_core::effects keeper_core::supervisor_not_started(instant now, const std::string& why) {
  effects out;
  const bool first = supervisor_fork_.refused(now);
  if (now - *supervisor_fork_.since >= limits::supervisor_fork_within)
    give_up(out, fmt::format("the node supervisor could not be started within {}: {}; giving up",
                             in_words(limits::supervisor_fork_within), why));
  else if (!endings_asked_for_.empty() && !worker_lives())
    give_up(out, fmt::format("ended as asked; the node supervisor could not be started: {}", why));
  else if (first)
    out.push_back(
        report_error{fmt::format("the node supervisor cannot be started: {}; trying again for {}{}",
                                 why, in_words(limits::supervisor_fork_within),
                                 worker_lives() ? ", while the workers train on" : "")});
  return out;
}

void keeper_core::give_up(effects& out, std::string why) {
  finished_ = true;
  out.push_back(finish{1, std::move(why)});
}

bool keeper_core::worker_lives() const {
  return std::any_of(table_.begin(), table_.end(),
                     [](const auto& p) { return !p.second.is_store && !p.second.how; });
}

std::string keeper_core::last_end_in_words(const ports::exit_status& how) const {
  return last_words_.empty() ? ports::to_string(how) : last_words_;
}

void keeper_core::present_all(effects& out) {
  for (auto& [process, r] : table_) {
    r.owned = false;
    out.push_back(send{local<ProcessPresent>(said_by, [process = process, &r = r](auto b) {
                         b.setProcess(process);
                         b.setPid(r.pid);
                         b.setLabel(r.label);
                         b.setIsStore(r.is_store);
                       }).any()});
  }
  out.push_back(send{local<AllPresented>(said_by, [this](auto b) {
                       b.setEarlierLives(static_cast<std::uint32_t>(lives_));
                     }).any()});
}

keeper_core::effects keeper_core::supervisor_stopped(instant now) {
  effects out;
  continue_at_ = now + limits::supervisor_stopped_within;
  if (!endings_asked_for_.empty())
    continue_supervisor(out);
  return out;
}

keeper_core::effects keeper_core::supervisor_continued() {
  continue_at_.reset();
  return {};
}

void keeper_core::continue_supervisor(effects& out) {
  continue_at_.reset();
  out.push_back(signal{supervisor_, SIGCONT, false});
}

keeper_core::effects keeper_core::supervisor_ended(instant now, const ports::exit_status& how) {
  effects out;
  supervisor_ = 0;
  continue_at_.reset();
  starts_open_ = 0;
  sweep_.cancel();
  sweeps_wanted_ = 0;
  store_wanted_.reset();
  store_fork_ = {};
  if (exit_code_) {
    finish_when_unlinked(out, now);
    return out;
  }
  // Without an exit code it crashed, however it ended: only its own word says that the job is over.
  if (!restarts_.spend(now)) {
    give_up(out, fmt::format("the node supervisor crashed {} times within {}, the last "
                             "time with {}; giving up",
                             restarts_.allowed() + 1, in_words(restarts_.period()),
                             last_end_in_words(how)));
    return out;
  }
  if (!last_words_.empty() && last_words_ != told_)
    out.push_back(report_error{
        fmt::format("the node supervisor cannot go on: {}; starting it again", last_words_)});
  told_ = last_words_;
  // One that worked for a while had bad luck. From the second in a row on that did not it waits
  // longer each time.
  const bool worked = lives_ > 0 && now - supervisor_since_ >= limits::supervisor_works_after;
  if (worked) {
    crashed_before_ = false;
    restart_pause_.reset();
  }
  restart_at_ = now;
  if (std::exchange(crashed_before_, true))
    *restart_at_ += restart_pause_.next();
  for (auto& e : tick(now))
    out.push_back(std::move(e));
  return out;
}

keeper_core::effects keeper_core::user_signal(instant now, int number) {
  effects out;
  const bool ending = ending_signals_.count(number) != 0;
  if (ending && finish_by_) {
    finish_by_ = now;
    finish_when_unlinked(out, now);
    return out;
  }
  // An end of which the job is sure waits for a helper's last work; a user who is not patient does
  // not. The supervisor knows nothing of single processes that its workers have left.
  if (ending)
    take_over(out, endings_asked_for_.empty() ? sweep_.hurry(now) : sweep_.kill_now(now));
  // The second wish is to wait no longer; more of them say no more.
  if (ending && endings_asked_for_.size() < 2)
    endings_asked_for_.push_back(number);
  if (supervisor_ != 0)
    out.push_back(user_signalled(number));
  if (ending && continue_at_)
    continue_supervisor(out);
  // The second wish is to wait no longer, not even for an end in order.
  if (ending && supervisor_fork_.since && (!worker_lives() || endings_asked_for_.size() > 1))
    give_up(out, "ended as asked, without a node supervisor, which could not be started");
  return out;
}

/// Ends of workers are heard of here, so this process must not be stopped by the terminal. Its user
/// gets the shell's prompt back all the same, as after Ctrl-Z and `bg`.
keeper_core::effects keeper_core::stop_asked_for() {
  return {report_error{"Ctrl-Z: this job goes on in the background, and its failures are handled; "
                       "`fg` brings it back"},
          leave_foreground{}};
}

keeper_core::effects keeper_core::tick(instant now) {
  effects out;
  if (restart_at_ && now >= *restart_at_) {
    restart_at_.reset();
    out.push_back(start_supervisor{});
  }
  if (supervisor_fork_.due(now))
    out.push_back(start_supervisor{});
  if (continue_at_ && now >= *continue_at_) {
    out.push_back(
        report_error{fmt::format("the node supervisor has been stopped (SIGSTOP) for {}: it "
                                 "is continued, since it decides whether its workers may "
                                 "train on",
                                 in_words(limits::supervisor_stopped_within))});
    continue_supervisor(out);
  }
  if (orphan_reaper_fork_.due(now))
    out.push_back(start_orphan_reaper{});
  if (store_fork_.due(now))
    start_store_if_free(out);
  take_over(out, sweep_.tick(now));
  if (finish_by_)
    finish_when_unlinked(out, now);
  return out;
}

std::optional<instant> keeper_core::next_wakeup() const {
  std::optional<instant> first;
  for (const auto& one :
       {restart_at_, continue_at_, sweep_.next_wakeup(), finish_by_, supervisor_fork_.again_at,
        orphan_reaper_fork_.again_at, store_fork_.again_at})
    if (one && (!first || *one < *first))
      first = one;
  return first;
}

// ---- the orphan reaper ----

keeper_core::effects keeper_core::orphan_reaper_started(instant now, pid_t pid) {
  orphan_reaper_ = pid;
  orphan_reaper_since_ = now;
  return {};
}

keeper_core::effects keeper_core::orphan_reaper_not_started(instant now, const std::string& why) {
  if (!orphan_reaper_fork_.refused(now))
    return {};
  return {
      report_error{fmt::format("the process that ends daemons when a launcher is killed cannot be "
                               "started: {}; trying again",
                               why)}};
}

// ---- processes ----

keeper_core::effects keeper_core::received(instant now, const any_msg& m) {
  effects out;
  const bool said = route(
      m, keeper_orders{},
      receivers{[this](const msg<ProcessStarting>&) { ++starts_open_; },
                [&](const msg<ProcessStarted>& started) {
                  auto s = started.read();
                  table_[s->getProcess()] = {s->getPid(), s->getLabel(), false, true,
                                             false,       false,         {}};
                  start_closed(out);
                },
                [&](const msg<ProcessNotStarted>&) { start_closed(out); },
                [&](const msg<ProcessAdopted>& a) { adopt(out, a.read()->getProcess()); },
                [&](const msg<ProcessSignal>& wanted) {
                  auto s = wanted.read();
                  pass_on(out, s->getProcess(), s->getSignal(), !s->getAlone());
                },
                [&](const msg<SweepWanted>& order) { begin_sweep(out, now, order); },
                [&](const msg<StoreWanted>& order) {
                  store_wanted_ = order;
                  store_fork_ = {};
                  start_store_if_free(out);
                },
                [&](const msg<Kept>& kept) { take_file(out, kept.read()->getSlot()); },
                // It says why and then ends, as a crash: without memory or threads it can do
                // nothing else.
                [this](const msg<SupervisorFailed>& f) { last_words_ = f.read()->getWhy().cStr(); },
                [this](const msg<SupervisorOver>& o) { exit_code_ = o.read()->getExitCode(); }});
  return said ? out : not_understood(fmt::format("no supervisor says {}", kind_name(m.kind())));
}

keeper_core::effects keeper_core::not_understood(const std::string& why) {
  if (std::exchange(misunderstood_, true))
    return {};
  return {
      report_error{fmt::format("the node supervisor has said what its keeper does not understand, "
                               "which is left out: {}",
                               why)}};
}

void keeper_core::take_file(effects& out, std::size_t slot) {
  if (slot < limits::kept_slots)
    out.push_back(keep_file{slot});
  else
    out = not_understood(fmt::format("there is no slot {}", slot));
}

void keeper_core::adopt(effects& out, std::uint64_t process) {
  const auto found = table_.find(process);
  if (found == table_.end())
    return;
  found->second.owned = true;
  if (found->second.how)
    tell_end(out, process, found->second);
}

void keeper_core::pass_on(effects& out, std::uint64_t process, int number, bool group) {
  auto* r = alive(process);
  if (!r)
    return;
  const bool asks = number == SIGTERM || ending_signals_.count(number) != 0;
  r->killed = r->killed || number == SIGKILL;
  r->asked = r->asked || (asks && group);
  out.push_back(signal{r->pid, number, group});
  // A stopped process (SIGSTOP, a debugger) does not see a signal before it continues.
  if (asks)
    out.push_back(signal{r->pid, SIGCONT, group});
}

/// Owned by the supervisor that ordered it; ProcessAdopted makes a survivor so, too.
keeper_core::effects keeper_core::store_started(instant, const store_order& order, pid_t pid) {
  table_[order.read()->getProcess()] = {pid, 0, true, true, false, false, {}};
  store_fork_ = {};
  return {};
}

keeper_core::effects keeper_core::store_not_started(instant now, const store_order& order,
                                                    const std::string& why) {
  (void)store_fork_.refused(now);
  // Later the supervisor waits no longer.
  if (*store_fork_.again_at - *store_fork_.since < limits::store_fork_within) {
    store_wanted_ = order;
    return {};
  }
  store_fork_ = {};
  return {refuse_store{fmt::format("the workers' store cannot be started: {}", why)}};
}

keeper_core::record* keeper_core::alive(std::uint64_t process) {
  const auto found = table_.find(process);
  return found == table_.end() || found->second.how ? nullptr : &found->second;
}

/// Looking finds the processes that have ended meanwhile, and those that are strays after all.
void keeper_core::start_closed(effects& out) {
  if (starts_open_ > 0 && --starts_open_ == 0)
    out.push_back(look{});
}

/// A pid is free for another process from here on, so every table forgets it in this one event.
keeper_core::effects keeper_core::child_ended(instant now, pid_t pid,
                                              const ports::exit_status& how) {
  effects out;
  inherited_.erase(pid);
  if (pid == orphan_reaper_) {
    orphan_reaper_ = 0;
    // One that ends at once, again and again, is forked less and less often.
    if (now - orphan_reaper_since_ < limits::supervisor_works_after) {
      (void)orphan_reaper_fork_.refused(now);
    } else {
      orphan_reaper_fork_ = {};
      out.push_back(start_orphan_reaper{});
    }
  }
  for (auto& [process, r] : table_) {
    if (r.pid != pid || r.how)
      continue;
    r.how = how;
    if (r.owned && supervisor_ != 0)
      tell_end(out, process, r);
    else if (sweep_.under_way())
      out.push_back(look{});
  }
  start_store_if_free(out);
  return out;
}

void keeper_core::start_store_if_free(effects& out) {
  for (const auto& [process, r] : table_)
    if (r.is_store && r.killed && !r.how)
      return;
  if (store_wanted_ && !store_fork_.again_at)
    out.push_back(start_store{*std::exchange(store_wanted_, std::nullopt)});
}

void keeper_core::tell_end(effects& out, std::uint64_t process, const record& r) const {
  out.push_back(send{local<ProcessEnded>(said_by, [process, &r](auto b) {
                       b.setProcess(process);
                       b.setSignalled(r.how->signalled);
                       b.setNumber(r.how->number);
                     }).any()});
}

std::vector<pid_t> keeper_core::awaited() const {
  std::vector<pid_t> pids;
  for (const auto& [process, r] : table_)
    if (!r.how)
      pids.push_back(r.pid);
  for (const pid_t pid : {supervisor_, orphan_reaper_})
    if (pid != 0)
      pids.push_back(pid);
  return pids;
}

} // namespace troupe::launch
