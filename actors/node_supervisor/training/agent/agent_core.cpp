// What agent_core does when it is told something by the master, the user or the world.

#include "actors/node_supervisor/training/agent/agent_core.hpp"

#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

namespace troupe::actors {

using namespace messages;

/// An agent that knows nothing of an earlier life counts as dirty: its first answer comes after a
/// sweep. Without it the master would start ranks beside processes of the last life.
agent_core::agent_core(agent_options options, messages::author author, bool leftovers)
    : options_(std::move(options)), author_(std::move(author)), dirty_(leftovers) {}

/// A number says enough: it is in the journal before it is proposed, so no two worlds ever share
/// one.
agent_core::fence agent_core::compare(generation which) const {
  if (which == current_)
    return fence::current;
  return which < current_ ? fence::older : fence::newer;
}

// ---- directives ----

/// Prepare is an order to be clean first. The answer, Prepared, waits until nothing of an older
/// generation lives on this node, since the master starts the new one when all have answered.
agent_core::effects agent_core::prepare(instant now, const msg<Prepare>& m) {
  effects out;
  const auto which = compare(m.envelope().about);
  // A node on its way out owes the master a Goodbye, and no further part in the job.
  if (outcome_ || which == fence::older)
    return checked(std::move(out));
  if (which == fence::current) {
    // The master repeats itself after a new link; the hello has told it everything but this.
    if (phase_ == phase::ready)
      say_prepared(out);
    return checked(std::move(out));
  }
  // Ranks that are not this node's would start as another node's. The master evicts a node that
  // does not get ready in time, and says so.
  const auto own = seat_in(*m.read(), options_.node);
  if (!own) {
    out.push_back(note{{log::level::error,
                        "no_seat",
                        fmt::format("generation {} has no seat for this node: waiting for another "
                                    "order of the master",
                                    count_of(m.envelope().about)),
                        {{"generation", static_cast<std::int64_t>(m.envelope().about.value)}}}});
    return checked(std::move(out));
  }
  // The fence moves before anything has ended: a Start of the older generation that is still on its
  // way finds no generation that it fits.
  current_ = m.envelope().about;
  next_seat_ = own;
  failed_at_.reset();
  if (own->since_failure > duration::zero())
    failed_at_ = now - own->since_failure;
  // Whatever is on its way down already leads here by itself: become_swept looks at next_seat_.
  if (phase_ == phase::draining || phase_ == phase::sweeping)
    return checked(std::move(out));
  // The order to stop goes out at once: the other members may be ready, and the slowest one decides
  // when the new generation starts.
  if (up_)
    become_draining(out, now, fmt::format("generation {} follows", count_of(current_)), SIGTERM,
                    options_.stop_within);
  else
    become_swept(out, now);
  return checked(std::move(out));
}

/// Only a ready node starts workers. A Start that crossed a Stop finds it idle, a repeated one
/// finds it running; obeying either would put two processes at one rank.
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
  // Goodbye has been said. To the master that is a loss at once, which ends every wait for this
  // node.
  if (phase_ == phase::over)
    return out;
  // A stale Stop is answered as well: a master that repeats an old one waits for the answer.
  if (compare(which) == fence::older || outcome_) {
    TROUPE_RARE_IF(outcome_, "agent: Stop comes to a node that leaves");
    // What there is of it is on its way down.
    if (holds_processes_of(which)) {
      // The newest open Stop stands for those before it: its answer says that nothing older is
      // left.
      stop_open_ = std::max(stop_open_, which);
      cut_parting_short(out, m.read()->getReason().cStr());
    } else {
      say_stopped(out, now, which);
    }
    return checked(std::move(out));
  }
  // A Stop may overtake its Prepare. That Prepare is no news then, and gets no workers ready for a
  // generation that is over.
  TROUPE_RARE_IF(compare(which) == fence::newer, "agent: Stop overtakes its Prepare");
  current_ = stop_open_ = which;
  next_seat_.reset();
  if (up_) {
    const std::string reason = m.read()->getReason().cStr();
    out.push_back(
        note{{log::level::info,
              "stopping_workers",
              fmt::format("stopping generation {}: {}", count_of(started_), reason),
              {{"generation", static_cast<std::int64_t>(started_.value)}, {"reason", reason}}}});
    TROUPE_RARE_IF(phase_ == phase::draining, "agent: Stop comes while workers are ended");
    // A generation that drains was told to, and the time that its workers have is running.
    if (phase_ != phase::draining)
      become_draining(out, now, reason, SIGTERM, options_.stop_within);
  } else if (phase_ != phase::sweeping) {
    become_swept(out, now);
  }
  return checked(std::move(out));
}

/// A standby has nothing to do: its link and its launcher are all that a later start needs. Only
/// the user has to hear why no worker runs here. What workers that have finished left behind had
/// its time while their generation ended.
agent_core::effects agent_core::stand_by(instant now, const msg<StandBy>& m) {
  effects out;
  if (!outcome_ && phase_ == phase::finished) {
    next_seat_.reset(); // it was this generation's
    become_swept(out, now);
  }
  if (!outcome_)
    out.push_back(note{{log::level::info,
                        "standing_by",
                        fmt::format("this node stands by, ready to take the place of one that is "
                                    "lost: {}",
                                    m.read()->getReason().cStr()),
                        {}}});
  return checked(std::move(out));
}

/// The first reason to leave stays. A verdict that comes after the user's signal makes no success
/// of an interrupted job.
agent_core::effects agent_core::conclude(instant now, const msg<Conclude>& m) {
  effects out;
  auto verdict = m.read();
  // The memory ends with the job: what is there alone is the user's last work, and goes to the
  // disk.
  saves_newest_ = !verdict->getSuccess();
  if (outcome_) {
    TROUPE_RARE_IF(phase_ == phase::saving, "agent: the job fails while a node saves and leaves");
    if (saves_newest_ && phase_ == phase::saving)
      out.push_back(save_newest{});
    cut_parting_short(out, verdict->getReason().cStr());
    return checked(std::move(out));
  }
  // A job succeeds when every node has finished, and a node finishes when its saves are finalized.
  // After a failure the last of them may still be on their way to the disk.
  saves_last_ = !verdict->getSuccess();
  leave(out, now, node_outcome{verdict->getSuccess(), verdict->getReason().cStr(), m}, SIGTERM,
        options_.stop_within);
  return checked(std::move(out));
}

/// Only a master can complete a step. So a node that has none waits for no last saves, and leaves
/// as soon as its processes are gone.
agent_core::effects agent_core::abandon(instant now, const std::string& reason) {
  effects out;
  if (!outcome_)
    leave(out, now, node_outcome{false, reason, {}}, SIGTERM, options_.stop_within);
  return checked(std::move(out));
}

/// The one way out, for verdict, signal and want of a master alike. A sweep that is under way ends
/// here by itself, as become_swept() looks at outcome_ before it looks at next_seat_.
void agent_core::leave(effects& out, instant now, node_outcome outcome, int signal,
                       duration within) {
  outcome_ = std::move(outcome);
  // What a store that is still being opened would be for is gone: awaits_store() says no from here
  // on.
  next_seat_.reset();
  if (up_)
    become_draining(out, now, outcome_->reason, signal, within);
  else if (phase_ != phase::sweeping)
    become_swept(out, now);
}

// ---- the world ----

/// A restart, or the end of the job, waits for processes that this node has not started: the user
/// is told for which, and how long at most.
agent_core::effects agent_core::left_behind(instant, const ports::left_behind& what) {
  effects out;
  const auto seconds = [](duration d) {
    return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(d).count());
  };
  const bool one = what.count == 1;
  TROUPE_RARE("agent: processes that workers left behind are waited for");
  out.push_back(
      note{{log::level::notice,
            "strays_awaited",
            fmt::format(
                "waiting for {} process{} the workers have left behind, {}: {}", what.count,
                one ? "" : "es", what.processes,
                what.quiet > duration{}
                    ? fmt::format("{} {} more to finish (--shutdown-timeout), then {} asked to end",
                                  one ? "it has" : "they have", seconds(what.quiet),
                                  one ? "it is" : "they are")
                    : fmt::format("asked to end, {} killed in {} (--shutdown-timeout)",
                                  one ? "it is" : "they are", seconds(what.left))),
            {{"processes", static_cast<std::int64_t>(what.count)},
             {"left_ms", milliseconds_of(what.left)}}}});
  return checked(std::move(out));
}

/// Nothing of the old generation is left, not even its daemons: from here on the node may promise
/// that.
agent_core::effects agent_core::swept(instant now, const ports::swept& what) {
  effects out;
  TROUPE_RARE_IF(what.killed > 0, "agent: processes that workers left behind are killed");
  if (what.killed > 0)
    out.push_back(note{{log::level::warning,
                        "strays_killed",
                        fmt::format("killed {} process{} the workers had left behind", what.killed,
                                    what.killed == 1 ? "" : "es"),
                        {{"killed", static_cast<std::int64_t>(what.killed)}}}});
  if (what.ended > 0)
    out.push_back(note{{log::level::info,
                        "strays_ended",
                        fmt::format("ended {} process{} the workers had left behind", what.ended,
                                    what.ended == 1 ? "" : "es"),
                        {{"ended", static_cast<std::int64_t>(what.ended)}}}});
  sweep_open_ = false;
  // A sweep after an adoption was for processes that were not known, while workers run. If they
  // have ended meanwhile, what they have left is not among what it found.
  dirty_ = up_ || swept_beside_workers_;
  if (swept_beside_workers_ && !up_) {
    begin_sweep(out, now);
    return checked(std::move(out));
  }
  // A failed generation stays failed here until the master has decided, but its Stopped goes out
  // now: the master judges a generation when each of its nodes has said so or is lost.
  if (phase_ == phase::sweeping)
    become_swept(out, now);
  else if (phase_ == phase::failed && !up_)
    say_stopped_generations(out, now);
  return checked(std::move(out));
}

/// A store takes a while to open. A Stop, a newer Prepare or the user may come first, and a port
/// that opens for a generation that is gone must not make this node ready for the next one.
bool agent_core::awaits_store(generation which) const {
  return phase_ == phase::idle && next_seat_ && !outcome_ && next_seat_->group_rank == 0 &&
         which == current_;
}

agent_core::effects agent_core::store_placed(instant, generation which, std::uint16_t port) {
  effects out;
  if (awaits_store(which))
    become_ready(out, port);
  return checked(std::move(out));
}

} // namespace troupe::actors
