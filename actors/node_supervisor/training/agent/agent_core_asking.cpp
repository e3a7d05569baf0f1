// How agent_core has workers save and end by themselves, where their end is a plan and no failure.
//
// What a stop costs is the work since the last save. A training program that knows how to end
// (graceful_exit of ms-swift) loses nothing: a signal to one of its processes, and all ranks save
// at the end of their step and exit with 0. It is told so in two cases, by the master for a change
// of the world, and by this node's user who wants the node to leave.

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <csignal>

namespace troupe::actors {

using namespace messages;

/// Repeated on each new link. A successor of a supervisor that crashed does not know that they were
/// asked, and asks again: that does no harm.
agent_core::effects agent_core::end_wanted(instant, const msg<EndWanted>& m) {
  effects out;
  if (outcome_ || phase_ != phase::running || compare(m.envelope().about) != fence::current ||
      asking_ != asking::none)
    return checked(std::move(out));
  out.push_back(note{{log::level::info,
                      "end_wanted",
                      fmt::format("the workers of generation {} are asked to save and end: {}",
                                  count_of(started_), m.read()->getReason().cStr()),
                      {{"generation", static_cast<std::int64_t>(started_.value)}}}});
  if (!ask_workers(out))
    say_end_answer(out, false);
  return checked(std::move(out));
}

/// A process without a handler would die of the signal, and be a failure. One that is being started
/// has none yet, and nothing to save either.
bool agent_core::ask_workers(effects& out) {
  if (any_worker(worker_phase::starting))
    return false;
  for (local_rank r = 0; r < workers_.size(); ++r)
    if (workers_[r].phase == worker_phase::alive) {
      asking_ = asking::looking;
      out.push_back(look_for_handler{started_, r, workers_[r].pid, options_.end_signal});
      return true;
    }
  return false;
}

agent_core::effects agent_core::handler_looked_for(instant, generation which, local_rank local,
                                                   bool there) {
  effects out;
  if (which != started_ || asking_ != asking::looking)
    return checked(std::move(out));
  TROUPE_RARE_IF(!there, "agent: workers that are to save and end have no handler for that");
  asking_ = there ? asking::asked : asking::none;
  // Those that end already, for whatever reason, are past being asked.
  const bool runs = phase_ == phase::running || parting_;
  if (there && runs && find(which, local)->phase == worker_phase::alive)
    out.push_back(signal_worker{local, options_.end_signal, true});
  if (!there && parting_)
    cut_parting_short(out, outcome_->reason);
  else if (!there && phase_ == phase::running)
    say_end_answer(out, false);
  return checked(std::move(out));
}

agent_core::effects agent_core::snapshot_wanted(instant) {
  effects out;
  say_begun(out);
  return checked(std::move(out));
}

/// The master waits for long only for what has begun.
void agent_core::say_begun(effects& out) {
  if (asking_ != asking::asked || phase_ != phase::running)
    return;
  asking_ = asking::begun;
  say_end_answer(out, true);
}

void agent_core::say_end_answer(effects& out, bool begun) {
  out.push_back(report{author_
                           .write<EndAnswer>(current_,
                                             [&](auto b) {
                                               b.setNode(options_.node);
                                               b.setBegun(begun);
                                             })
                           .any()});
}

// ---- this node leaves ----

/// A node is told to go by SIGTERM. Ctrl-C is for a job that is to end soon.
bool agent_core::may_part(int signal) const {
  return signal == SIGTERM && options_.leave_within && phase_ == phase::running &&
         !any_worker(worker_phase::starting) && any_worker(worker_phase::alive);
}

/// The others' workers end along with these, each in its time. So the node says that it has
/// finished, as theirs do, before it says Goodbye.
void agent_core::part(effects& out, instant now, int signal) {
  parting_ = parting{now + *options_.leave_within, signal};
  ask_workers(out);
}

void agent_core::cut_parting_short(effects& out, const std::string& reason) {
  if (!parting_)
    return;
  const auto signal = parting_->signal;
  parting_.reset();
  stop_workers(out, reason, signal, options_.stop_within);
}

} // namespace troupe::actors
