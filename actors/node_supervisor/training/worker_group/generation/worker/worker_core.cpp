#include "actors/node_supervisor/training/worker_group/generation/worker/worker_core.hpp"

#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

std::uint64_t microseconds(duration d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

} // namespace

worker_core::worker_core(const assignment& place, author author)
    : place_(place), author_(std::move(author)) {}

// ---- the process ----

/// Start, order and end reach a worker from three directions (the slow thread, the supervisor, the
/// keeper), in any order. Whatever came too early was put by, and takes effect here, behind the
/// start.
worker_core::effects worker_core::started(instant now, std::int32_t pid) {
  effects out;
  // The start was overdue and has been reported as failed: no answer brings it back.
  if (phase_ != phase::starting)
    return out;
  phase_.become(phase::running);
  answer_until_.reset();
  pid_ = pid;
  // First of all, so that the agent knows the pid of the process whose end it hears next.
  out.push_back(tell_start{author_.write<WorkerStarted>(place_.which, [&](auto b) {
    b.setLocalRank(place_.local);
    b.setPid(pid_);
  })});
  // The order to stop came while the process was on its way; it could not be obeyed before.
  if (const auto wish = std::exchange(waiting_, std::nullopt)) {
    TROUPE_RARE("worker: an order to stop came before the process was there");
    auto stopping = stop(now, wish->signal, wish->within);
    out.insert(out.end(), stopping.begin(), stopping.end());
  }
  // A short process may end before the thread that started it could say so.
  if (ended_already_) {
    auto ending = exited(now, *ended_already_);
    out.insert(out.end(), ending.begin(), ending.end());
  }
  return out;
}

/// For the job this is a failure like any other: the world lacks a rank, and its peers would wait
/// for that rank in vain.
worker_core::effects worker_core::not_started(instant now, const std::string& why,
                                              std::int64_t unix_time_ms) {
  effects out;
  if (phase_ != phase::starting)
    return out;
  phase_.become(phase::gone);
  answer_until_.reset();
  status_ = {false, 1};
  exit_report report;
  report.message = why;
  report.unix_time_ms = unix_time_ms;
  tell(out, now, status_, report, true);
  return out;
}

/// A good end is told at once. Only a failure has reasons to be read, from files on a disk that may
/// be slow; and the job waits for them, since it is judged by them.
worker_core::effects worker_core::exited(instant now, const ports::exit_status& status) {
  effects out;
  if (phase_ == phase::starting)
    ended_already_ = status;
  if (!has_process())
    return out;
  phase_.become(phase::gone);
  status_ = status;
  if (status.success()) {
    tell(out, now, status, {}, false);
  } else {
    answer_until_ = now + limits::explain_within;
    out.push_back(explain{status});
  }
  return out;
}

/// The deadline marks that reasons are awaited, and goes with the first ones: what a disk yields
/// after it was given up changes nothing that has been reported.
worker_core::effects worker_core::explained(instant now, const exit_report& why) {
  effects out;
  if (phase_ == phase::gone && std::exchange(answer_until_, std::nullopt))
    tell(out, now, status_, why, false);
  return out;
}

/// The same disk may hang when a process is to be started and when its error file is to be read;
/// both waits end here, so that one bad mount does not hold up the whole job.
worker_core::effects worker_core::unanswered(instant now, const exit_report& why) {
  return phase_ == phase::starting ? not_started(now, why.message, why.unix_time_ms)
                                   : explained(now, why);
}

// ---- orders ----

/// Orders only ever shorten the life of a process: the one with the least patience holds, whichever
/// came first. So a supervisor may repeat its order at any time without giving a deaf process more
/// time.
worker_core::effects worker_core::stop(instant now, int signal_number, duration within) {
  effects out;
  if (phase_ == phase::told)
    return out;
  // Also when the process has just ended by itself. The agent hears of that failure all the same;
  // but a worker whose end was wanted gives its generation no reason to fail.
  ordered_ = true;
  // An end without a pid says nothing to the agent: it waits for the start to be heard.
  if (phase_ == phase::starting) {
    // A later order takes the place of this one: it usually has less patience.
    waiting_ = stop_wish{signal_number, within};
    return out;
  }
  // Nothing is stronger than SIGKILL, and nothing is left to signal behind an end.
  if (phase_ == phase::gone || phase_ == phase::killed)
    return out;
  if (signal_number == SIGKILL) {
    kill(out, now);
    return out;
  }
  // The process has been asked, and has less time left than this order would give it. A
  // supervisor's second order, or the user's signal behind a Stop, must not stretch the end.
  const bool brings_time = phase_ == phase::stopping && now + within >= kill_at_;
  TROUPE_RARE_IF(brings_time, "worker: a second order has more patience than the first");
  if (brings_time)
    return out;
  if (phase_ == phase::running)
    phase_.become(phase::stopping);
  kill_at_ = now + within;
  within_ = within;
  // The first signal is the one that counts: an error file that is older tells of a failure of the
  // process's own, a younger one may only tell of the signal.
  if (!signalled_at_)
    signalled_at_ = now;
  out.push_back(signal{signal_number});
  return out;
}

/// A supervisor that goes down has no time for SIGTERM, and a process must not outlive its actor:
/// no other one would signal it or hear of its end. A generation that is *stopped* has patience;
/// this is not the way it ends.
worker_core::effects worker_core::shut_down(instant now) {
  abandons_ = true;
  auto out = stop(now, SIGKILL, limits::kill_within);
  // Killed before, when there was still patience.
  if (phase_ == phase::killed && kill_at_ > now + limits::kill_within)
    kill_at_ = now + limits::kill_within;
  return out;
}

/// For a process that is to end such a signal comes too late.
worker_core::effects worker_core::pass_on(int signal_number, bool alone) {
  effects out;
  if (phase_ == phase::running)
    out.push_back(signal{signal_number, alone});
  return out;
}

/// Only now may the siblings be signalled. The worker's end is what has them stopped, and by then
/// the agent has withdrawn the handover and reported the failure: otherwise a crash in between
/// would leave a successor that adopts dying workers.
worker_core::effects worker_core::noted() {
  effects out;
  if (phase_ != phase::gone)
    return out;
  phase_.become(phase::told);
  // An end that was wanted is no reason for others to end, whatever its exit code: programs take
  // SIGTERM in many ways, and most do not exit with 0.
  out.push_back(quit{ordered_ ? std::nullopt : failed_because_});
  return out;
}

// ---- time ----

/// An alarm may ring early, or for a deadline that has moved since: each branch looks at its own
/// time.
worker_core::effects worker_core::tick(instant now) {
  effects out;
  if (answer_until_ && now >= *answer_until_) {
    // The name of what does not answer goes into the report; a user who reads only of a timeout
    // would look for it in the training program.
    // Asked again, should the answer to this not come.
    answer_until_ = now + limits::explain_within;
    out.push_back(overdue{
        phase_ == phase::starting
            ? fmt::format("it could not be started within {}: a disk that it needs does not answer",
                          troupe::in_words(limits::start_within))
            : fmt::format("{} (its error file could not be read within {}: the disk does not "
                          "answer)",
                          ports::to_string(status_), troupe::in_words(limits::explain_within))});
    return out;
  }
  if ((phase_ != phase::stopping && phase_ != phase::killed) || now < kill_at_)
    return out;
  if (phase_ == phase::stopping) {
    TROUPE_RARE("worker: a process does not end in time and is killed");
    out.push_back(note{{log::level::warning,
                        "worker_killed",
                        fmt::format("rank {} (pid {}) did not end within {}; killing it",
                                    place_.rank, pid_, troupe::in_words(within_)),
                        {{"rank", std::int64_t{place_.rank}}, {"pid", std::int64_t{pid_}}}}});
    kill(out, now);
    return out;
  }
  out.push_back(note{
      {log::level::error,
       "worker_unkillable",
       fmt::format(
           "rank {} (pid {}) is still there after SIGKILL: the kernel holds it, mostly for a disk, "
           "a network file system or a device that does not answer (cat /proc/{}/stack); {}",
           place_.rank, pid_, pid_,
           abandons_ ? "it is left behind" : "this node takes no part until it is gone"),
       {{"rank", std::int64_t{place_.rank}}, {"pid", std::int64_t{pid_}}}}});
  // The error returns as long as the kernel holds the process, because this node can take part
  // in no other generation until it is gone.
  kill_at_ = now + limits::kill_within;
  out.push_back(signal{SIGKILL});
  // Past `gone` without a word to the agent: the process has not ended, and the agent goes down
  // too.
  if (abandons_) {
    phase_.become(phase::gone);
    phase_.become(phase::told);
    out.push_back(quit{fmt::format("rank {} is still there after SIGKILL", place_.rank)});
  }
  return out;
}

/// The two deadlines never run at once: what waits for an answer of a disk has no process to signal
/// yet, or none any more.
std::optional<instant> worker_core::next_wakeup() const {
  return phase_ == phase::stopping || phase_ == phase::killed ? std::optional(kill_at_)
                                                              : answer_until_;
}

// ---- transitions and words ----

/// The kernel ends a process at once or holds it; so the time behind this is the same whatever
/// patience there was before.
void worker_core::kill(effects& out, instant now) {
  phase_.become(phase::killed);
  kill_at_ = now + limits::kill_within;
  if (!signalled_at_)
    signalled_at_ = now;
  out.push_back(signal{SIGKILL});
}

/// Two readers, two words. The reason that travels up the tree is the exit in short; traceback, log
/// and age go to the agent, and from there to the master, which finds the root cause by them.
void worker_core::tell(effects& out, instant now, const ports::exit_status& status,
                       const exit_report& why, bool before_start) {
  if (!status.success())
    failed_because_ = before_start ? why.message : ports::to_string(status);
  out.push_back(tell_end{author_.write<WorkerEnded>(place_.which, [&](auto b) {
    auto r = b.initReport();
    r.setLocalRank(place_.local);
    r.setRank(place_.rank);
    r.setPid(pid_);
    r.setExitCode(status.code());
    r.setMessage(why.message);
    r.setTraceback(why.traceback);
    r.setLogFile(why.error_file);
    r.setUnixTimeMs(why.unix_time_ms);
    r.setBeforeStart(before_start);
    r.setOutOfMemory(why.out_of_memory);
    r.setLogTail(why.log_tail);
    r.setAgoUs(microseconds(why.ago));
    // An age, like that of the error file in the report: the agent compares the two.
    b.setSignalled(signalled_at_.has_value());
    if (signalled_at_)
      b.setSignalledUs(microseconds(now - *signalled_at_));
  })});
}

std::string worker_core::in_words() const {
  switch (phase_) {
  case phase::starting:
    return fmt::format("rank {} is being started", place_.rank);
  case phase::running:
    return fmt::format("rank {} runs as pid {}", place_.rank, pid_);
  case phase::stopping:
    return fmt::format("rank {} (pid {}) was asked to end", place_.rank, pid_);
  case phase::killed:
    return fmt::format("rank {} (pid {}) was killed", place_.rank, pid_);
  case phase::gone:
  case phase::told:
    return fmt::format("rank {} (pid {}) is gone", place_.rank, pid_);
  }
  return {};
}

} // namespace troupe::actors
