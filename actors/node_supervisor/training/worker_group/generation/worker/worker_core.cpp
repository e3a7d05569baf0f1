#include "actors/node_supervisor/training/worker_group/generation/worker/worker_core.hpp"

#include "runtime/base/invariant.hpp"

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

worker_core::effects worker_core::started(instant now, std::int32_t pid) {
  effects out;
  if (phase_ != phase::starting)
    return out;
  become(phase::running);
  answer_until_.reset();
  pid_ = pid;
  out.push_back(tell_start{author_.write<WorkerStarted>(place_.which, [&](auto b) {
    b.setLocalRank(place_.local);
    b.setPid(pid_);
  })});
  // The order to stop came while the process was on its way; it could not be obeyed before.
  if (const auto wish = std::exchange(waiting_, std::nullopt)) {
    auto stopping = stop(now, wish->signal, wish->within);
    out.insert(out.end(), stopping.begin(), stopping.end());
  }
  if (ended_already_) {
    auto ending = exited(now, *ended_already_);
    out.insert(out.end(), ending.begin(), ending.end());
  }
  return out;
}

worker_core::effects worker_core::not_started(instant now, const std::string& why,
                                              std::int64_t unix_time_ms) {
  effects out;
  if (phase_ != phase::starting)
    return out;
  become(phase::gone);
  answer_until_.reset();
  status_ = {false, 1};
  exit_report report;
  report.message = why;
  report.unix_time_ms = unix_time_ms;
  tell(out, now, status_, report, true);
  return out;
}

worker_core::effects worker_core::exited(instant now, const ports::exit_status& status) {
  effects out;
  if (phase_ == phase::starting)
    ended_already_ = status;
  if (!has_process())
    return out;
  become(phase::gone);
  status_ = status;
  if (status.success()) {
    tell(out, now, status, {}, false);
  } else {
    answer_until_ = now + limits::explain_within;
    out.push_back(explain{status});
  }
  return out;
}

worker_core::effects worker_core::explained(instant now, const exit_report& why) {
  effects out;
  if (phase_ == phase::gone && std::exchange(answer_until_, std::nullopt))
    tell(out, now, status_, why, false);
  return out;
}

worker_core::effects worker_core::unanswered(instant now, const exit_report& why) {
  return phase_ == phase::starting ? not_started(now, why.message, why.unix_time_ms)
                                   : explained(now, why);
}

// ---- orders ----

worker_core::effects worker_core::stop(instant now, int signal_number, duration within) {
  effects out;
  if (phase_ == phase::told)
    return out;
  ordered_ = true;
  if (phase_ == phase::starting) {
    waiting_ = stop_wish{signal_number, within};
    return out;
  }
  if (phase_ == phase::gone || phase_ == phase::killed)
    return out;
  if (signal_number == SIGKILL) {
    kill(out, now);
    return out;
  }
  // The process has been asked, and has less time left than this order would give it.
  if (phase_ == phase::stopping && now + within >= kill_at_)
    return out;
  if (phase_ == phase::running)
    become(phase::stopping);
  kill_at_ = now + within;
  within_ = within;
  if (!signalled_at_)
    signalled_at_ = now;
  out.push_back(signal{signal_number});
  return out;
}

worker_core::effects worker_core::shut_down(instant now) {
  abandons_ = true;
  auto out = stop(now, SIGKILL, limits::kill_within);
  // Killed before, when there was still patience.
  if (phase_ == phase::killed && kill_at_ > now + limits::kill_within)
    kill_at_ = now + limits::kill_within;
  return out;
}

worker_core::effects worker_core::pass_on(int signal_number) {
  effects out;
  if (phase_ == phase::running)
    out.push_back(signal{signal_number});
  return out;
}

worker_core::effects worker_core::noted() {
  effects out;
  if (phase_ != phase::gone)
    return out;
  become(phase::told);
  out.push_back(quit{ordered_ ? std::nullopt : failed_because_});
  return out;
}

// ---- time ----

worker_core::effects worker_core::tick(instant now) {
  effects out;
  if (answer_until_ && now >= *answer_until_) {
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
    out.push_back(note{{log::level::warning,
                        "worker_killed",
                        fmt::format("rank {} (pid {}) did not end within {}; killing it",
                                    place_.rank, pid_, troupe::in_words(within_)),
                        {{"rank", std::int64_t{place_.rank}}, {"pid", std::int64_t{pid_}}}}});
    kill(out, now);
    return out;
  }
  out.push_back(
      note{{log::level::error,
            "worker_unkillable",
            fmt::format(
                "rank {} (pid {}) is still there after SIGKILL; the kernel holds it (D state?){}",
                place_.rank, pid_, abandons_ ? "; leaving it behind" : ""),
            {{"rank", std::int64_t{place_.rank}}, {"pid", std::int64_t{pid_}}}}});
  kill_at_ = now + limits::kill_within;
  out.push_back(signal{SIGKILL});
  if (abandons_) {
    become(phase::gone);
    become(phase::told);
    out.push_back(quit{fmt::format("rank {} is still there after SIGKILL", place_.rank)});
  }
  return out;
}

std::optional<instant> worker_core::next_wakeup() const {
  return phase_ == phase::stopping || phase_ == phase::killed ? std::optional(kill_at_)
                                                              : answer_until_;
}

// ---- transitions and words ----

void worker_core::become(phase to) {
  invariant(phase_ < to, "a worker's phases go one way");
  phase_ = to;
}

void worker_core::kill(effects& out, instant now) {
  become(phase::killed);
  kill_at_ = now + limits::kill_within;
  if (!signalled_at_)
    signalled_at_ = now;
  out.push_back(signal{SIGKILL});
}

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
