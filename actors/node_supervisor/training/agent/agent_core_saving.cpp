// How agent_core finishes: not before what the processes wanted saved is finalized.

#include "actors/node_supervisor/training/agent/agent_core.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

/// The job is over when all nodes have finished, and with it go the nodes and the master that could
/// still complete a step. So a node waits for its saver before it finishes.
agent_core::effects agent_core::drained(instant now, generation which,
                                        const std::optional<error>& trouble) {
  effects out;
  // A Stop or a newer generation came first, and its phase does not wait for this answer.
  TROUPE_RARE_IF(phase_ != phase::saving, "agent: the saver answers after an order to stop");
  if (phase_ != phase::saving || which != current_)
    return checked(std::move(out));
  // A saver that crashed has lost the question. The next one reads the snapshots' table first and
  // is then asked again. A node that leaves asks once, as its time is bounded.
  if (trouble && !outcome_ && ++drain_tries_ < limits::drain_tries_max) {
    out.push_back(drain{which, limits::drain_again_after});
    return checked(std::move(out));
  }
  // The end is told all the same: a saver that never answers must not keep the whole job from
  // ending, and the step before is complete.
  if (trouble)
    out.push_back(note{{log::level::warning,
                        "not_drained",
                        "it is not known whether the last checkpoints are complete: " +
                            trouble->what + "; a load takes the newest that is",
                        {{"generation", static_cast<std::int64_t>(which.value)}}}});
  // The node leaves either way; what differs is whether the job hears that it finished, or only
  // that it goes.
  if (outcome_)
    become_over(out, now);
  else
    become_finished(out, now);
  return checked(std::move(out));
}

/// The handover stays: a successor must know of workers that have finished, or it would say that
/// nothing runs here, and the master would start the ranks again.
void agent_core::become_saving(effects& out, duration within) {
  phase_.become(phase::saving);
  say_watched(out);
  drain_tries_ = 0;
  out.push_back(drain{current_, {}, within});
}

/// The master waits for this node's Goodbye before it forms the next world, so that world finds all
/// that was saved. About a generation: a node that has come under the name knows none.
agent_core::effects agent_core::leave_wanted(instant now, const msg<Leave>& m) {
  effects out;
  auto wish = m.read();
  if (outcome_ || m.envelope().about != current_)
    return checked(std::move(out));
  if (options_.node != wish->getNode().cStr()) {
    out.push_back(save_newest{});
    return checked(std::move(out));
  }
  TROUPE_RARE("agent: this node is to leave the job");
  saves_last_ = saves_newest_ = true;
  leave(out, now,
        node_outcome{
            false, fmt::format("this node leaves the job: {}", wish->getReason().cStr()), {}},
        SIGTERM, options_.stop_within);
  return checked(std::move(out));
}

/// From here on the node owes the master no Stopped, unless a Stop asks for it.
void agent_core::become_finished(effects& out, instant) {
  phase_.become(phase::finished);
  says_stopped_ = false;
  say_finished(out, asking_ == asking::asked || asking_ == asking::begun);
  out.push_back(note{{log::level::info,
                      "workers_finished",
                      "all local workers have finished",
                      {{"generation", static_cast<std::int64_t>(current_.value)}}}});
}

void agent_core::say_finished(effects& out, bool asked) {
  out.push_back(report{author_
                           .write<Finished>(started_,
                                            [&](auto b) {
                                              b.setNode(options_.node);
                                              b.setAsked(asked);
                                            })
                           .any()});
}

} // namespace troupe::actors
