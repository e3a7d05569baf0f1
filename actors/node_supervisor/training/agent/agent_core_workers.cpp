// What agent_core learns from its workers and their supervisors, and what it takes for a failure.

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// As the worker says it: below 0 a signal.
ports::exit_status status_of(const WorkerFailure::Reader& r) {
  const auto code = r.getExitCode();
  return code < 0 ? ports::exit_status{true, -code} : ports::exit_status{false, code};
}

} // namespace

/// Without the fence a late end of the last generation's worker would end its slot in this one.
agent_core::worker* agent_core::find(generation which, local_rank local) {
  return which == started_ && local < workers_.size() ? &workers_[local] : nullptr;
}

bool agent_core::any_worker(worker_phase in) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [in](const worker& w) { return w.phase == in; });
}

// ---- events ----

/// Running is said once, when the last worker is up: the master tells from it that training runs
/// again.
agent_core::effects agent_core::worker_started(instant, const msg<WorkerStarted>& m) {
  effects out;
  auto said = m.read();
  auto* w = find(m.envelope().about, said->getLocalRank());
  if (!w || w->phase != worker_phase::starting)
    return checked(std::move(out));
  w->phase = worker_phase::alive;
  w->pid = said->getPid();
  // It comes up although a sibling has failed. The order to end waits for it at its own worker, and
  // after Failed the master must not hear Running.
  TROUPE_RARE_IF(phase_ != phase::running, "agent: a worker is started after the order to end");
  if (phase_ != phase::running)
    return checked(std::move(out));
  // What the user sent to the workers while this one was on its way.
  for (const int signal : std::exchange(w->requests, {}))
    out.push_back(signal_worker{said->getLocalRank(), signal});
  if (!any_worker(worker_phase::starting))
    all_started(out);
  return checked(std::move(out));
}

/// The first end counts. A second one is posted for every worker's actor when that has ended, in
/// case it crashed and could not say so itself.
agent_core::effects agent_core::worker_ended(instant now, const msg<WorkerEnded>& m) {
  effects out;
  auto said = m.read();
  auto r = said->getReport();
  auto* w = find(m.envelope().about, r.getLocalRank());
  if (!w || w->phase == worker_phase::ended)
    return checked(std::move(out));
  w->phase = worker_phase::ended;
  say_begun(out);
  if (parting_ && !status_of(r).success())
    parting_->clean = false;
  const std::chrono::microseconds ago(r.getAgoUs());
  // An error file that is older than our signal: the worker had failed by then, and its interpreter
  // was only slow to end.
  const bool told_before = r.getLogFile().size() > 0 && r.getAgoUs() > said->getSignalledUs();
  const bool failed = r.getBeforeStart() || !status_of(r).success();
  const bool ours = failed && by_our_hand(m, told_before);
  TROUPE_RARE_IF(failed && !ours && phase_ == phase::draining,
                 "agent: a worker fails by itself while its generation is ended");
  if (failed && !ours)
    take_failure(out, now, {m, now - ago, said->getSignalled() && status_of(r).signalled, w->hung});
  return checked(std::move(out));
}

/// None of its processes was ever there, so every rank fails, before its start and for the one
/// reason. Silence would leave the master waiting for a Running that never comes.
agent_core::effects agent_core::generation_refused(instant now, generation which,
                                                   const std::string& why,
                                                   std::int64_t unix_time_ms) {
  effects out;
  if (which != started_ || !up_)
    return checked(std::move(out));
  for (local_rank r = 0; r < workers_.size(); ++r) {
    if (std::exchange(workers_[r].phase, worker_phase::ended) != worker_phase::ended)
      take_failure(out, now, {lost_worker(r, why, 1, true, unix_time_ms), now, false, {}});
  }
  // Before the report, which says by it that none is left.
  up_ = false;
  processes_gone(out, now);
  return checked(std::move(out));
}

/// The one event by which the agent believes that no process is left. The words of the single
/// workers do not suffice: an actor that crashed says none.
agent_core::effects agent_core::generation_ended(instant now, generation which,
                                                 std::int64_t unix_time_ms) {
  effects out;
  if (which != started_ || !up_)
    return checked(std::move(out));
  // Workers that ended without a word ended with a supervisor that crashed. While a sound
  // generation is being stopped such an end is the one that was asked for.
  for (local_rank r = 0; r < workers_.size(); ++r) {
    if (std::exchange(workers_[r].phase, worker_phase::ended) == worker_phase::ended ||
        phase_ == phase::draining)
      continue;
    const auto end =
        lost_worker(r, "the actor that owned it has ended", -SIGKILL, false, unix_time_ms);
    take_failure(out, now, {end, now, false, {}});
  }
  up_ = false;
  processes_gone(out, now);
  return checked(std::move(out));
}

void agent_core::all_started(effects& out) {
  out.push_back(report{author_
                           .write<Running>(current_,
                                           [&](auto b) {
                                             b.setNode(options_.node);
                                             auto pids =
                                                 b.initPids(static_cast<unsigned>(workers_.size()));
                                             for (unsigned i = 0; i < workers_.size(); ++i)
                                               pids.set(i, workers_[i].pid);
                                           })
                           .any()});
  out.push_back(note{{log::level::info,
                      "workers_started",
                      fmt::format("{} worker{} started for generation {}", workers_.size(),
                                  workers_.size() == 1 ? "" : "s", count_of(current_)),
                      {{"generation", static_cast<std::int64_t>(current_.value)}}}});
  say_watched(out);
}

/// SIGKILL, since a process that hangs may take no other signal; one that is stopped takes this
/// one. Its process alone: among those that it has started is the one that unlinks its semaphores
/// when all others are gone. Its end is a failure like any other, told with the reason.
agent_core::effects agent_core::end_worker(instant, const msg<EndWorker>& m) {
  effects out;
  const auto rank = m.read()->getRank();
  if (m.envelope().about != started_ || phase_ != phase::running || rank < seat_.first_rank)
    return checked(std::move(out));
  const auto local = rank - seat_.first_rank;
  auto* w = find(started_, local);
  if (!w || w->phase != worker_phase::alive)
    return checked(std::move(out));
  w->hung = m.read()->getWhy().cStr();
  out.push_back(signal_worker{local, SIGKILL, true});
  return checked(std::move(out));
}

/// Of a generation that is being ended nothing is watched: its processes stand still by order.
msg<Watched> agent_core::watched() {
  const bool all = phase_ == phase::running && !any_worker(worker_phase::starting);
  return author_.write<Watched>(started_, [&](auto b) {
    b.setWorldSize(seat_.world_size);
    b.setEndedWell(ended_well_at_.has_value());
    if (failed_at_)
      b.setFailedAtNs(static_cast<std::uint64_t>(
          std::chrono::nanoseconds(failed_at_->time_since_epoch()).count()));
    auto processes = b.initProcesses(all ? static_cast<unsigned>(workers_.size()) : 0);
    for (unsigned i = 0; i < processes.size(); ++i) {
      processes[i].setLocalRank(i);
      processes[i].setRank(seat_.first_rank + i);
      processes[i].setPid(workers_[i].pid);
    }
  });
}

void agent_core::say_watched(effects& out) {
  const auto now = watched();
  const bool some = now.read()->getProcesses().size() > 0;
  if (some || watched_)
    out.push_back(watch{now});
  watched_ = some;
}

/// The last worker of the generation has ended, however that was. A generation that still runs when
/// its last worker ends has ended well: any other end would have made it fail before.
void agent_core::processes_gone(effects& out, instant now) {
  parted_well_ = parting_ && parting_->clean;
  parting_.reset();
  if (phase_ == phase::draining)
    return become_swept(out, now);
  if (phase_ == phase::running) {
    ended_well_at_ = now;
    return become_saving(out, limits::drain_within);
  }
  // It stays failed, but leaves nothing alive while it waits for what the master decides.
  out.push_back(report{failures(now).any()});
  // Failed goes out before the sweep: the master hears at once that the siblings are gone, and of
  // their own failures. Stopped, for which it waits, comes after the sweep.
  begin_sweep(out, now);
}

// ---- failures ----

/// Which end is a failure, and which one only follows from our own signal? While a sound generation
/// is being stopped no end is a failure: that is what stopping does. After a failure, here or
/// elsewhere, the siblings may still have something to say of their own; but a process that dies of
/// our signal has nothing to say, unless it had told why before (an interpreter may take long to
/// end after its exception).
bool agent_core::by_our_hand(const msg<WorkerEnded>& m, bool told_before) const {
  auto said = m.read();
  auto r = said->getReport();
  if (told_before || r.getBeforeStart())
    return false;
  // After a verdict of failure this node's user is still to see what failed here by itself.
  const bool failed = phase_ != phase::draining || !failures_.empty() ||
                      (outcome_ && outcome_->verdict && !outcome_->success);
  if (!failed)
    return true;
  const auto status = status_of(r);
  // A shell around the training program turns a signal into an exit code of 128 and its number.
  return said->getSignalled() && (status.signalled || status.number > 128);
}

/// Failures are kept in the order in which they are worth looking at: the oldest that is a
/// process's own first. The exit of one that our signal ended says nothing about the cause, even if
/// its error file is the oldest.
void agent_core::take_failure(effects& out, instant now, failure f) {
  tell_failure(out, now, f);
  // The bound is what a Hello with all of them may take; on most nodes the first one explains the
  // rest.
  if (failures_.size() < limits::failures_kept) {
    const auto later = [](const failure& a, const failure& b) {
      return a.stopped != b.stopped ? b.stopped : a.shown_at < b.shown_at;
    };
    failures_.insert(std::upper_bound(failures_.begin(), failures_.end(), f, later), std::move(f));
  }
  // If it was the last one the end of the generation follows at once, and is told with it. A Failed
  // speaks for the generation this node is at: once a newer one is asked for, the failures of the
  // old one go out with its Stopped instead.
  const bool more_to_come = any_worker(worker_phase::starting) || any_worker(worker_phase::alive);
  if (started_ == current_ && more_to_come)
    out.push_back(report{failures(now).any()});
  // The first failure of a generation, and the only one that changes the phase.
  if (phase_ == phase::running)
    become_failed(out, now);
}

void agent_core::tell_failure(effects& out, instant, const failure& f) {
  auto said = f.end.read();
  auto r = said->getReport();
  const auto rank = seat_.first_rank + r.getLocalRank();
  out.push_back(
      note{{log::level::info,
            r.getBeforeStart() ? "worker_not_started" : "worker_failed",
            fmt::format("rank {} (local rank {}{}) failed: {}", rank, r.getLocalRank(),
                        r.getBeforeStart() ? std::string{} : fmt::format(", pid {}", r.getPid()),
                        r.getMessage().cStr()),
            {{"generation", static_cast<std::int64_t>(started_.value)},
             {"rank", std::int64_t{rank}},
             {"pid", std::int64_t{r.getPid()}},
             {"exit_code", std::int64_t{r.getExitCode()}}}}});
}

/// In the words of a worker that had none of its own. The exit code says what happened to the
/// process: killed along with its supervisor, or never there.
msg<WorkerEnded> agent_core::lost_worker(local_rank local, const std::string& why,
                                         std::int32_t exit_code, bool before_start,
                                         std::int64_t unix_time_ms) {
  return author_.write<WorkerEnded>(started_, [&](auto b) {
    auto r = b.initReport();
    r.setLocalRank(local);
    r.setPid(workers_[local].pid);
    r.setExitCode(exit_code);
    r.setMessage(why);
    r.setBeforeStart(before_start);
    r.setUnixTimeMs(unix_time_ms);
  });
}

} // namespace troupe::actors
