// What agent_core does when the user sends the launcher a signal, and says while that takes.

#include "actors/node_supervisor/training/agent/agent_core.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

std::string name_of(int signal) {
  return ports::to_string(ports::exit_status{true, signal});
}

/// How the user is told to send it once more.
const char* again(int signal) {
  return signal == SIGINT ? "a second Ctrl-C" : "a second signal";
}

std::string in_whole_seconds(duration d) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(d).count());
}

} // namespace

// ---- signals ----

/// The user's first signal asks for an end in order: the workers have their time, and what they
/// saved reaches the disk. Each further one takes away what is still waited for. A node that leaves
/// by the master's verdict has not heard the user yet: a scheduler that tells one node after the
/// other must not cut the last saves of all but the first.
agent_core::effects agent_core::interrupted(instant now, int signal, bool ends_job) {
  effects out;
  if (phase_ == phase::over)
    return checked(std::move(out));
  const bool first = !std::exchange(user_waits_, true);
  if (outcome_ && first) {
    const auto within = up_ ? std::max(time_until_ - now, duration{}) : limits::last_saves_within;
    out.push_back(note{
        {log::level::notice,
         "interrupted",
         fmt::format("{}: the job is over, and {}; {} more at most, or now by {}", name_of(signal),
                     what_is_waited_for(), in_whole_seconds(within), again(signal)),
         {{"signal", std::int64_t{signal}}}}});
    await_patiently(now, within);
    return checked(std::move(out));
  }
  // No process is left, so only the disk is waited for: the second wish ends that wait.
  if (outcome_ && phase_ == phase::saving) {
    become_over(out, now);
    return checked(std::move(out));
  }
  if (outcome_) {
    TROUPE_RARE("agent: a second signal");
    // No more patience.
    patience_.reset();
    parting_.reset();
    if (up_)
      out.push_back(note{{log::level::notice,
                          "interrupted_again",
                          fmt::format("{}: killing the workers", name_of(signal)),
                          {{"signal", std::int64_t{signal}}}}});
    stop_workers(
        out,
        fmt::format("the launcher received {} while the workers were stopping", name_of(signal)),
        SIGKILL, limits::kill_within);
    return checked(std::move(out));
  }
  // A wish to end is no wish to lose the last checkpoint.
  saves_last_ = true;
  saves_newest_ = ends_job;
  const bool parts = may_part(signal);
  const auto within = options_.stop_within + (parts ? *options_.leave_within : duration{});
  out.push_back(note{
      {log::level::notice,
       "interrupted",
       fmt::format("{}: {}. {}", name_of(signal),
                   parts ? "this node leaves, and its workers are asked to save" : "the job ends",
                   up_ ? fmt::format("Workers have {} to end; {} kills them now",
                                     in_whole_seconds(within), again(signal))
                       : "No worker runs here"),
       {{"signal", std::int64_t{signal}}}}});
  await_patiently(now, within);
  if (parts)
    part(out, now, signal);
  leave(
      out, now,
      node_outcome{false, fmt::format("the launcher received {}", name_of(signal)), {}, {}, signal},
      signal, options_.stop_within);
  return checked(std::move(out));
}

/// Such a signal (SIGUSR1, SIGWINCH) ends nothing, so no phase changes and no failure is expected.
/// Workers that are being ended do not get it: for them it comes too late.
agent_core::effects agent_core::passed_on(instant, int signal) {
  effects out;
  if (phase_ != phase::running)
    return checked(std::move(out));
  out.push_back(
      note{{log::level::notice,
            "signal_passed_on",
            fmt::format("{} received; passing it on to the workers, and going on", name_of(signal)),
            {{"signal", std::int64_t{signal}}}}});
  for (local_rank r = 0; r < workers_.size(); ++r)
    if (workers_[r].phase == worker_phase::alive)
      out.push_back(signal_worker{r, signal});
    else if (workers_[r].phase == worker_phase::starting)
      // There is no process to signal yet. A set, as for the kernel: a signal that is pending twice
      // is delivered once.
      workers_[r].requests.insert(signal);
  return checked(std::move(out));
}

// ---- patience ----

void agent_core::await_patiently(instant now, duration within) {
  const auto every = std::max<duration>(limits::countdown_every, within / limits::countdown_lines);
  patience_ = patience{now + within, now + every, every};
}

/// Saves that take no time at all are not spoken of.
void agent_core::await_last_saves(instant now) {
  await_patiently(now, limits::last_saves_within);
  patience_->next = now + limits::last_saves_told_after;
}

std::string agent_core::what_is_waited_for() const {
  if (phase_ == phase::saving)
    return "the last checkpoints are not on the disk yet";
  return up_ ? workers_left() : "what the workers left behind is being ended";
}

std::optional<instant> agent_core::next_wakeup() const {
  if (patience_ && parting_)
    return std::min(patience_->next, parting_->until);
  return patience_ ? std::optional(patience_->next) : std::nullopt;
}

/// A user who has asked for the end sees what it waits for, and for how long at most.
agent_core::effects agent_core::tick(instant now) {
  effects out;
  if (parting_ && now >= parting_->until) {
    TROUPE_RARE("agent: workers do not end by themselves, and the user's signal is passed on");
    cut_parting_short(out, outcome_->reason);
  }
  if (!patience_ || now < patience_->next)
    return checked(std::move(out));
  const auto left = patience_->until - now;
  const bool goes_on = phase_ != phase::over && outcome_ && left > duration{};
  if (goes_on)
    out.push_back(note{{log::level::notice,
                        "ending",
                        fmt::format("{}; {} more at most, or now by {}", what_is_waited_for(),
                                    in_whole_seconds(left), again(outcome_->signal)),
                        {{"left_ms", milliseconds_of(left)}}}});
  patience_->next += patience_->every;
  if (!goes_on || patience_->next >= patience_->until)
    patience_.reset();
  return checked(std::move(out));
}

std::string agent_core::workers_left() const {
  std::vector<global_rank> ranks;
  for (local_rank r = 0; r < workers_.size(); ++r)
    if (workers_[r].phase != worker_phase::ended)
      ranks.push_back(seat_.first_rank + r);
  const auto all = ranks.size();
  ranks.resize(std::min<std::size_t>(all, limits::ranks_named));
  return fmt::format("rank{} {}{} ha{} not ended", all == 1 ? "" : "s", fmt::join(ranks, ", "),
                     all > ranks.size() ? fmt::format(" and {} more", all - ranks.size()) : "",
                     all == 1 ? "s" : "ve");
}

} // namespace troupe::actors
