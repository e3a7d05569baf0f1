// How agent_core goes from one phase to the next, and what must hold in each.

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

/// Each line is a state out of which this node would tell the master something that is not so, or
/// would leave a process that no actor steers. Looked at after every event, so that the event that
/// broke it is the one that is named.
agent_core::effects agent_core::checked(effects out) const {
  invariant(phase_ != phase::running || up_, "running without a generation");
  invariant(!up_ || phase_.in(phase::running, phase::failed, phase::draining),
            "a generation is up that this phase knows nothing of");
  invariant(phase_ != phase::draining || up_, "draining, and nothing drains");
  invariant(!phase_.in(phase::running, phase::failed) || started_ == current_,
            "the workers are another generation's");
  // The sweep would be left out.
  invariant(!up_ || dirty_, "processes without a trace");
  invariant(phase_ != phase::sweeping || sweep_open_, "sweeping, and nothing sweeps");
  // Prepared rests on this one.
  invariant(phase_ != phase::ready || (next_seat_ && !dirty_), "ready beside what is left");
  // The successor would say `running` of a generation whose workers are about to end.
  invariant(!remembered_ || phase_.in(phase::running, phase::saving, phase::finished),
            "a successor would adopt what is being ended");
  invariant(phase_ != phase::over || outcome_, "over without an outcome");
  invariant(!parting_ || phase_ == phase::draining, "a node parts from workers that are gone");
  return out;
}

/// The order of the effects matters: first the snapshots are asked for, then the handover is
/// withdrawn, and only then is the first worker signalled. A crash between any two of them loses
/// nothing and adopts nothing that is on its way out.
void agent_core::become_draining(effects& out, instant now, const std::string& reason, int signal,
                                 duration within) {
  // After a failure become_failed() has asked for it already.
  if (options_.save_at_breakpoint && phase_ == phase::running)
    out.push_back(save_newest{});
  phase_.become(phase::draining);
  say_watched(out);
  forget_underway(out);
  // A second order does not restart the clock: the user is told how long the end took in all.
  if (!draining_since_) {
    draining_since_ = now;
    time_until_ = now + within + (parting_ ? *options_.leave_within : duration{});
  }
  if (!parting_)
    stop_workers(out, reason, signal, within);
}

/// No process is alive. Once nothing they left behind is either, goes on to what is next.
void agent_core::become_swept(effects& out, instant now) {
  forget_underway(out);
  if (dirty_) {
    phase_.become(phase::sweeping);
    begin_sweep(out, now);
    return;
  }
  if (draining_since_) {
    const auto took = now - *draining_since_;
    draining_since_.reset();
    out.push_back(
        note{{log::level::info,
              "workers_gone",
              fmt::format("the processes of generation {} are gone, {} after the first signal",
                          count_of(started_), troupe::in_words(took)),
              {{"generation", static_cast<std::int64_t>(started_.value)},
               {"drain_ms", milliseconds_of(took)}}}});
  }
  // From here on a late word of a worker finds no slot.
  workers_.clear();
  // Not before the processes are gone, though they may have finished long ago: workers of other
  // nodes may still use the store at the end of the job.
  if (std::exchange(store_open_, false))
    out.push_back(close_store{});
  // Before the next generation is prepared: the master judges the old one by this, and it carries
  // the failures that are forgotten below.
  say_stopped_generations(out, now);
  if (outcome_)
    return become_gone(out, now);
  phase_.become(phase::idle);
  failures_.clear();
  // A Prepare that came while the old workers were ending takes effect here, the newest one if
  // there were several.
  if (next_seat_)
    become_preparing(out);
}

/// The node of group rank 0 stays idle until it knows the port: its Prepared has to name it, since
/// Start tells every node where the ranks meet.
void agent_core::become_preparing(effects& out) {
  if (next_seat_->group_rank != 0)
    return become_ready(out, 0);
  // Rank 0's worker will host the store. A free port is all that its launcher can find for it.
  if (!options_.hosts_store) {
    out.push_back(pick_port{current_, next_seat_->address});
    return;
  }
  // Whatever reaches the port may use it: where all workers are here, nothing else has to.
  const bool alone = next_seat_->nodes == 1;
  out.push_back(open_store{current_,
                           alone ? ports::store_reach::this_machine : ports::store_reach::network,
                           next_seat_->address});
  store_open_ = true;
}

/// Whatever this node waited for has come, and no process of an older generation lives: only from
/// here is a Start obeyed.
void agent_core::become_ready(effects& out, std::uint16_t port) {
  phase_.become(phase::ready);
  store_port_ = port;
  say_prepared(out);
}

/// The handover is kept before the first process exists. A supervisor that crashes right after it
/// leaves a successor that knows the generation and starts what is missing; the other way round its
/// processes would be unknown, and be swept.
void agent_core::become_running(effects& out, const msg<Start>& m) {
  phase_.become(phase::running);
  started_ = current_;
  seat_ = *next_seat_;
  up_ = dirty_ = says_stopped_ = true;
  ended_well_at_.reset();
  asking_ = asking::none;
  workers_.assign(options_.slots, worker{});
  remembered_ = true;
  out.push_back(remember{underway(m)});
  out.push_back(start_generation{current_, slots_of(m)});
}

/// The siblings are being stopped by their supervisor; the agent waits for the end of all. The
/// handover is withdrawn here and not with a signal of the agent's: the worker that failed waits
/// for this event to be taken, and its siblings are signalled right after it.
void agent_core::become_failed(effects& out, instant now) {
  if (options_.save_at_breakpoint)
    out.push_back(save_newest{});
  phase_.become(phase::failed);
  say_watched(out);
  forget_underway(out);
  draining_since_ = now;
  time_until_ = now + options_.stop_within;
}

/// Nothing is left of what this node ran, and it leaves. A node that never started a worker has
/// saved nothing.
void agent_core::become_gone(effects& out, instant now) {
  if (!saves_last_ || started_ == generation{})
    return become_over(out, now);
  await_last_saves(now);
  if (saves_newest_)
    out.push_back(save_newest{});
  become_saving(out, limits::last_saves_within);
}

/// Goodbye comes first: node_over ends the launcher, and with it the link. The outcome carries all
/// failures of this node, also those after the verdict, since its own user is to see them.
void agent_core::become_over(effects& out, instant now) {
  phase_.become(phase::over);
  patience_.reset();
  if (!failures_.empty())
    outcome_->failures = failures(now);
  // Else it would be a loss, for which the others are stopped, in the middle of their saves.
  if (parted_well_)
    say_finished(out, true);
  out.push_back(
      report{author_.write<Goodbye>({}, [&](auto b) { b.setReason(outcome_->reason); }).any()});
  out.push_back(node_over{*outcome_});
}

/// One order to the generation's supervisor. A second one with another signal reaches those that
/// still live; what has ended is not signalled again.
void agent_core::stop_workers(effects& out, const std::string& reason, int signal,
                              duration within) const {
  if (up_)
    out.push_back(stop_generation{started_, reason, signal, within});
}

/// One at a time is enough. The keeper looks in rounds until it finds nothing, so a sweep that is
/// under way also finds what has been left since it began.
void agent_core::begin_sweep(effects& out, instant now) {
  if (sweep_open_)
    return;
  sweep_open_ = true;
  swept_beside_workers_ = up_;
  out.push_back(sweep{time_for_the_left(now)});
}

/// Processes below a worker are part of it until they had their time: the rest of what their worker
/// had when that was to end, and all of it when it was not. At the end of a job that succeeded they
/// may first finish what they do (an upload); nothing waits for this node then.
ports::sweep_order agent_core::time_for_the_left(instant now) const {
  const auto least = std::min<duration>(options_.stop_within, limits::left_behind_least);
  if (up_)
    return {{}, least};
  if (ended_well_at_ && outcome_ && outcome_->success) {
    const auto quiet = std::max(*ended_well_at_ + options_.stop_within - now, duration{});
    return {quiet, quiet + std::min<duration>(options_.stop_within, limits::left_behind_asked)};
  }
  if (draining_since_)
    return {{}, std::max(time_until_ - now, least)};
  return {{}, options_.stop_within};
}

/// Also what an earlier incarnation may have left, of a generation that is not known any more. An
/// unknown one counts as older than any: it has to be gone before any Stop is answered.
bool agent_core::holds_processes_of(generation which) const {
  return (up_ || dirty_) && started_ <= which;
}

} // namespace troupe::actors
