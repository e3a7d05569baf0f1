#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

leader_core::leader_core(leader_options options, messages::author author, bool leftovers)
    : options_(std::move(options)), author_(std::move(author)), dirty_(leftovers) {}

// ---- directives ----

leader_core::effects leader_core::prepare(instant now, const msg<Prepare>& m) {
  effects out;
  const auto which = m.envelope().about;
  if (outcome_ || which < current_)
    return out;
  if (which == current_) {
    // The master repeats itself after a new link; the hello has told it everything but this.
    if (phase_ == phase::ready)
      say_prepared(out);
    return out;
  }
  current_ = which;
  take_place(m);
  if (phase_ == phase::draining || phase_ == phase::sweeping)
    return out;
  if (any_alive())
    become_draining(out, now, SIGTERM, options_.stop_within);
  else
    become_swept(out, now);
  return out;
}

leader_core::effects leader_core::start(instant, const msg<Start>& m) {
  effects out;
  if (!outcome_ && m.envelope().about == current_ && phase_ == phase::ready)
    become_running(out, m);
  return out;
}

leader_core::effects leader_core::stop(instant now, const msg<Stop>& m) {
  effects out;
  if (outcome_ || m.envelope().about != current_)
    return out;
  const std::string reason = m.read()->getReason().cStr();
  world_.reset();
  if (phase_ == phase::idle)
    return out;
  if (any_alive()) {
    out.push_back(
        note{{log::level::info,
              "stopping_workers",
              fmt::format("stopping generation {}: {}", current_.value, reason),
              {{"generation", static_cast<std::int64_t>(current_.value)}, {"reason", reason}}}});
    if (phase_ != phase::draining)
      become_draining(out, now, SIGTERM, options_.stop_within);
  } else if (phase_ != phase::sweeping) {
    become_swept(out, now);
  }
  return out;
}

leader_core::effects leader_core::conclude(instant now, const msg<Conclude>& m) {
  effects out;
  if (outcome_)
    return out;
  auto verdict = m.read();
  saves_last_ = !verdict->getSuccess();
  leave(out, now, node_outcome{verdict->getSuccess(), verdict->getReason().cStr(), m}, SIGTERM,
        options_.stop_within);
  return out;
}

leader_core::effects leader_core::interrupted(instant now, int signal) {
  effects out;
  if (phase_ == phase::over)
    return out;
  if (outcome_ && phase_ == phase::saving) {
    become_over(out, now);
    return out;
  }
  if (outcome_) {
    end_all(out, now, SIGKILL, limits::kill_within);
    return out;
  }
  saves_last_ = true;
  out.push_back(note{{log::level::story,
                      "interrupted",
                      fmt::format("{} received; passing it on to the workers",
                                  ports::to_string(ports::exit_status{true, signal})),
                      {{"signal", std::int64_t{signal}}}}});
  leave(out, now,
        node_outcome{false,
                     fmt::format("the launcher received {}",
                                 ports::to_string(ports::exit_status{true, signal})),
                     {}},
        signal, options_.stop_within);
  return out;
}

leader_core::effects leader_core::passed_on(instant, int signal) {
  effects out;
  if (phase_ != phase::running)
    return out;
  const auto name = ports::to_string(ports::exit_status{true, signal});
  out.push_back(note{{log::level::story,
                      "signal_passed_on",
                      fmt::format("{} received; passing it on to the workers, and going on", name),
                      {{"signal", std::int64_t{signal}}}}});
  for (local_rank r = 0; r < workers_.size(); ++r)
    if (workers_[r].phase == worker_phase::alive)
      out.push_back(signal_worker{r, signal});
    else if (workers_[r].phase == worker_phase::starting)
      workers_[r].requests.insert(signal);
  return out;
}

leader_core::effects leader_core::abandon(instant now, const std::string& reason) {
  effects out;
  if (!outcome_)
    leave(out, now, node_outcome{false, reason, {}}, SIGTERM, options_.stop_within);
  return out;
}

// ---- processes ----

leader_core::effects leader_core::worker_started(instant, generation which, local_rank local,
                                                 std::int32_t pid) {
  effects out;
  if (which != started_ || local >= workers_.size())
    return out;
  auto& w = workers_[local];
  if (w.phase == worker_phase::ended && w.pid == 0) {
    // It was taken for not started, because nobody answered in time, and is nobody's worker.
    out.push_back(end_worker{local, SIGKILL, limits::kill_within});
    return out;
  }
  if (w.phase != worker_phase::starting)
    return out;
  w.phase = worker_phase::alive;
  w.pid = pid;
  if (phase_ != phase::running)
    return out;
  for (const int signal : std::exchange(w.requests, {}))
    out.push_back(signal_worker{local, signal});
  const bool all = std::none_of(workers_.begin(), workers_.end(),
                                [](const worker& x) { return x.phase == worker_phase::starting; });
  if (!all)
    return out;
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
                                  workers_.size() == 1 ? "" : "s", current_.value),
                      {{"generation", static_cast<std::int64_t>(current_.value)}}}});
  return out;
}

leader_core::effects leader_core::worker_not_started(instant now, generation which,
                                                     local_rank local, const std::string& why,
                                                     std::int64_t unix_time_ms) {
  effects out;
  if (which != started_ || local >= workers_.size() || workers_[local].phase == worker_phase::ended)
    return out;
  workers_[local].phase = worker_phase::ended;
  take_failure(out, now, failure{local, 0, 1, {why, {}, {}, unix_time_ms, {}}, now, true});
  worker_is_gone(out, now);
  return out;
}

leader_core::effects leader_core::worker_ended(instant now, generation which, local_rank local,
                                               const ports::exit_status& status,
                                               const obituary& why) {
  effects out;
  if (which != started_ || local >= workers_.size() || workers_[local].phase == worker_phase::ended)
    return out;
  auto& w = workers_[local];
  w.phase = worker_phase::ended;
  w.succeeded = status.success();
  if (!w.succeeded && !by_our_hand(w, status, why, now))
    take_failure(out, now, failure{local, w.pid, status.code(), why, now - why.ago, false});
  worker_is_gone(out, now);
  return out;
}

leader_core::effects leader_core::swept(instant now, std::size_t killed) {
  effects out;
  if (killed > 0)
    out.push_back(note{{log::level::warning,
                        "strays_killed",
                        fmt::format("killed {} process{} the workers had left behind", killed,
                                    killed == 1 ? "" : "es"),
                        {{"killed", static_cast<std::int64_t>(killed)}}}});
  sweep_open_ = false;
  // After an adoption it was for what nobody knew, and workers run.
  dirty_ = any_alive();
  if (phase_ == phase::sweeping)
    become_swept(out, now);
  return out;
}

leader_core::effects leader_core::store_placed(instant, std::uint16_t port) {
  effects out;
  if (phase_ == phase::idle && world_ && !outcome_ && group_rank_ == 0)
    become_ready(out, port);
  return out;
}

// ---- transitions ----

void leader_core::become_draining(effects& out, instant now, int signal, duration within) {
  if (options_.save_at_breakpoint && phase_ == phase::running)
    out.push_back(save_newest{});
  phase_ = phase::draining;
  forget_underway(out);
  if (!draining_since_)
    draining_since_ = now;
  end_all(out, now, signal, within);
}

/// No process is alive. Once nothing they left behind is either, goes on to what is next.
void leader_core::become_swept(effects& out, instant now) {
  forget_underway(out);
  if (dirty_) {
    phase_ = phase::sweeping;
    begin_sweep(out);
    return;
  }
  if (draining_since_) {
    const auto took = now - *draining_since_;
    draining_since_.reset();
    out.push_back(
        note{{log::level::info,
              "workers_gone",
              fmt::format("the processes of generation {} are gone, {} after the first signal",
                          started_.value, troupe::in_words(took)),
              {{"generation", static_cast<std::int64_t>(started_.value)},
               {"drain_ms", milliseconds_of(took)}}}});
  }
  workers_.clear();
  if (std::exchange(store_open_, false))
    out.push_back(close_store{});
  if (outcome_)
    return become_gone(out, now);
  phase_ = phase::idle;
  failures_.clear();
  if (world_)
    become_preparing(out);
}

void leader_core::become_preparing(effects& out) {
  if (group_rank_ != 0)
    return become_ready(out, 0);
  if (!options_.hosts_store) {
    out.push_back(pick_port{});
    return;
  }
  // Anybody who reaches it may use it: where all workers are here, nobody else has to.
  const bool alone = world().read()->getWorld().getMembers().size() == 1;
  out.push_back(open_store{alone ? ports::store_reach::this_machine : ports::store_reach::network});
  store_open_ = true;
}

void leader_core::become_ready(effects& out, std::uint16_t port) {
  phase_ = phase::ready;
  store_port_ = port;
  say_prepared(out);
}

void leader_core::become_running(effects& out, const msg<Start>& m) {
  phase_ = phase::running;
  started_ = current_;
  dirty_ = true;
  workers_.assign(options_.slots, worker{});
  remembered_ = true;
  out.push_back(remember{underway(m)});
  for (local_rank r = 0; r < options_.slots; ++r)
    out.push_back(start_worker{place_of(r, m)});
}

void leader_core::become_failed(effects& out, instant now) {
  if (options_.save_at_breakpoint)
    out.push_back(save_newest{});
  phase_ = phase::failed;
  forget_underway(out);
  draining_since_ = now;
  end_all(out, now, SIGTERM, options_.stop_within);
}

void leader_core::become_over(effects& out, instant now) {
  phase_ = phase::over;
  if (!failures_.empty())
    outcome_->failures = failures(now);
  out.push_back(
      report{author_.write<Goodbye>({}, [&](auto b) { b.setReason(outcome_->reason); }).any()});
  out.push_back(node_over{*outcome_});
}

// ---- decisions ----

/// While a generation is being ended nobody fails any more. After a failure, here or elsewhere, the
/// siblings may still have something to say; but whoever dies of our own signal has not failed,
/// unless it had told why before: an interpreter may take long to end after its exception.
bool leader_core::by_our_hand(const worker& w, const ports::exit_status& status,
                              const obituary& why, instant now) const {
  if (!w.asked_at || (!why.error_file.empty() && now - why.ago < *w.asked_at))
    return false;
  const bool failed =
      phase_ != phase::draining || (outcome_ && outcome_->verdict && !outcome_->success);
  return !failed || status.signalled || status.success() || status.number > 128;
}

bool leader_core::any_alive() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const worker& w) { return w.phase != worker_phase::ended; });
}

void leader_core::end_all(effects& out, instant now, int signal, duration within) {
  for (local_rank r = 0; r < workers_.size(); ++r) {
    if (workers_[r].phase == worker_phase::ended)
      continue;
    if (!workers_[r].asked_at)
      workers_[r].asked_at = now;
    out.push_back(end_worker{r, signal, within});
  }
}

void leader_core::begin_sweep(effects& out) {
  if (sweep_open_)
    return;
  sweep_open_ = true;
  out.push_back(sweep{});
}

void leader_core::worker_is_gone(effects& out, instant now) {
  if (any_alive())
    return;
  if (phase_ == phase::draining)
    return become_swept(out, now);
  if (phase_ == phase::failed) {
    // Stays failed, but leaves nothing alive while it waits for what the master decides.
    if (started_ == current_)
      out.push_back(report{failures(now).any()});
    begin_sweep(out);
    return;
  }
  if (phase_ == phase::running)
    become_saving(out, limits::drain_within);
}

void leader_core::take_failure(effects& out, instant now, failure f) {
  if (failures_.size() < limits::failures_kept)
    failures_.push_back(f);
  const auto rank = first_rank_ + f.local;
  out.push_back(note{
      {log::level::info,
       f.before_start ? "worker_not_started" : "worker_failed",
       fmt::format("rank {} (local rank {}{}) failed: {}", rank, f.local,
                   f.before_start ? std::string{} : fmt::format(", pid {}", f.pid), f.why.message),
       {{"generation", static_cast<std::int64_t>(started_.value)},
        {"rank", std::int64_t{rank}},
        {"pid", std::int64_t{f.pid}},
        {"exit_code", std::int64_t{f.exit_code}}}}});
  // Of the last one's end worker_is_gone() tells.
  if (started_ == current_ && any_alive())
    out.push_back(report{failures(now).any()});
  if (phase_ == phase::running)
    become_failed(out, now);
}

void leader_core::leave(effects& out, instant now, node_outcome outcome, int signal,
                        duration within) {
  outcome_ = std::move(outcome);
  world_.reset();
  if (any_alive())
    become_draining(out, now, signal, within);
  else if (phase_ != phase::sweeping)
    become_swept(out, now);
}

} // namespace troupe::actors
