// What agent_core does when it is told something by the master, the user or the world.

#include "actors/node_supervisor/training/agent/agent_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

agent_core::agent_core(agent_options options, messages::author author, bool leftovers)
    : options_(std::move(options)), author_(std::move(author)), dirty_(leftovers) {}

agent_core::fence agent_core::compare(generation which) const {
  if (which == current_)
    return fence::current;
  return which < current_ ? fence::older : fence::newer;
}

// ---- directives ----

agent_core::effects agent_core::prepare(instant now, const msg<Prepare>& m) {
  effects out;
  const auto which = compare(m.envelope().about);
  if (outcome_ || which == fence::older)
    return checked(std::move(out));
  if (which == fence::current) {
    // The master repeats itself after a new link; the hello has told it everything but this.
    if (phase_ == phase::ready)
      say_prepared(out);
    return checked(std::move(out));
  }
  current_ = m.envelope().about;
  take_place(m);
  // Whatever is on its way down already leads here by itself: become_swept looks at world_.
  if (phase_ == phase::draining || phase_ == phase::sweeping)
    return checked(std::move(out));
  if (up_)
    become_draining(out, now, fmt::format("generation {} follows", current_.value), SIGTERM,
                    options_.stop_within);
  else
    become_swept(out, now);
  return checked(std::move(out));
}

agent_core::effects agent_core::start(instant, const msg<Start>& m) {
  effects out;
  if (!outcome_ && compare(m.envelope().about) == fence::current && phase_ == phase::ready)
    become_running(out, m);
  return checked(std::move(out));
}

/// A Stop is an order and a question: it is answered with Stopped, sooner or later. For a
/// generation that this node has never heard of the answer is the same, but whatever older one runs
/// here is over as well: the master goes on only when it is.
agent_core::effects agent_core::stop(instant now, const msg<Stop>& m) {
  effects out;
  const auto which = m.envelope().about;
  if (phase_ == phase::over)
    return out;
  if (compare(which) == fence::older || outcome_) {
    // What there is of it is on its way down.
    if (holds_processes_of(which))
      stop_open_ = std::max(stop_open_, which);
    else
      say_stopped(out, now, which);
    return checked(std::move(out));
  }
  current_ = stop_open_ = which;
  world_.reset();
  if (up_) {
    const std::string reason = m.read()->getReason().cStr();
    out.push_back(
        note{{log::level::info,
              "stopping_workers",
              fmt::format("stopping generation {}: {}", started_.value, reason),
              {{"generation", static_cast<std::int64_t>(started_.value)}, {"reason", reason}}}});
    if (phase_ != phase::draining)
      become_draining(out, now, reason, SIGTERM, options_.stop_within);
  } else if (phase_ != phase::sweeping) {
    become_swept(out, now);
  }
  return checked(std::move(out));
}

agent_core::effects agent_core::stand_by(instant, const msg<StandBy>& m) {
  effects out;
  if (!outcome_)
    out.push_back(note{{log::level::info,
                        "standing_by",
                        fmt::format("this node stands by, ready to take the place of one that is "
                                    "lost: {}",
                                    m.read()->getReason().cStr()),
                        {}}});
  return checked(std::move(out));
}

agent_core::effects agent_core::conclude(instant now, const msg<Conclude>& m) {
  effects out;
  if (outcome_)
    return checked(std::move(out));
  auto verdict = m.read();
  saves_last_ = !verdict->getSuccess();
  leave(out, now, node_outcome{verdict->getSuccess(), verdict->getReason().cStr(), m}, SIGTERM,
        options_.stop_within);
  return checked(std::move(out));
}

// ---- the user ----

agent_core::effects agent_core::interrupted(instant now, int signal) {
  effects out;
  if (phase_ == phase::over)
    return checked(std::move(out));
  const auto name = ports::to_string(ports::exit_status{true, signal});
  if (outcome_ && phase_ == phase::saving) {
    become_over(out, now);
    return checked(std::move(out));
  }
  if (outcome_) {
    // The second signal, or one when the node was leaving anyway: no more patience.
    stop_workers(out, fmt::format("the launcher received {} while the workers were stopping", name),
                 SIGKILL, limits::kill_within);
    return checked(std::move(out));
  }
  saves_last_ = true;
  out.push_back(note{{log::level::story,
                      "interrupted",
                      fmt::format("{} received; passing it on to the workers", name),
                      {{"signal", std::int64_t{signal}}}}});
  leave(out, now, node_outcome{false, fmt::format("the launcher received {}", name), {}}, signal,
        options_.stop_within);
  return checked(std::move(out));
}

agent_core::effects agent_core::passed_on(instant, int signal) {
  effects out;
  if (phase_ != phase::running)
    return checked(std::move(out));
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
  return checked(std::move(out));
}

agent_core::effects agent_core::abandon(instant now, const std::string& reason) {
  effects out;
  if (!outcome_)
    leave(out, now, node_outcome{false, reason, {}}, SIGTERM, options_.stop_within);
  return checked(std::move(out));
}

void agent_core::leave(effects& out, instant now, node_outcome outcome, int signal,
                       duration within) {
  outcome_ = std::move(outcome);
  world_.reset();
  if (up_)
    become_draining(out, now, outcome_->reason, signal, within);
  else if (phase_ != phase::sweeping)
    become_swept(out, now);
}

// ---- the world ----

agent_core::effects agent_core::swept(instant now, std::size_t killed) {
  effects out;
  if (killed > 0)
    out.push_back(note{{log::level::warning,
                        "strays_killed",
                        fmt::format("killed {} process{} the workers had left behind", killed,
                                    killed == 1 ? "" : "es"),
                        {{"killed", static_cast<std::int64_t>(killed)}}}});
  sweep_open_ = false;
  // A sweep after an adoption was for processes that were not known, while workers run.
  dirty_ = up_;
  if (phase_ == phase::sweeping)
    become_swept(out, now);
  else if (phase_ == phase::failed && !up_)
    say_stopped_generations(out, now);
  return checked(std::move(out));
}

bool agent_core::awaits_store(generation which) const {
  return phase_ == phase::idle && world_ && !outcome_ && group_rank_ == 0 && which == current_;
}

agent_core::effects agent_core::store_placed(instant, generation which, std::uint16_t port) {
  effects out;
  if (awaits_store(which))
    become_ready(out, port);
  return checked(std::move(out));
}

} // namespace troupe::actors
