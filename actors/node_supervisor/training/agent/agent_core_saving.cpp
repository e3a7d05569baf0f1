// How agent_core finishes: not before what the processes wanted saved is settled.

#include "actors/node_supervisor/training/agent/agent_core.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

/// The job is over when all nodes have finished, and with it go the nodes and the master that could
/// still complete a step. So a node waits for its saver before it finishes.
agent_core::effects agent_core::drained(instant now, generation which,
                                        const std::optional<error>& trouble) {
  effects out;
  if (phase_ != phase::saving || which != current_)
    return checked(std::move(out));
  if (trouble && !outcome_ && ++drain_tries_ < limits::drain_tries_max) {
    out.push_back(drain{which, limits::drain_again_after});
    return checked(std::move(out));
  }
  if (trouble)
    out.push_back(note{{log::level::warning,
                        "not_drained",
                        "the state of the last checkpoints is unknown: " + trouble->what,
                        {{"generation", static_cast<std::int64_t>(which.value)}}}});
  if (outcome_)
    become_over(out, now);
  else
    become_finished(out, now);
  return checked(std::move(out));
}

void agent_core::become_saving(effects& out, duration within) {
  become(phase::saving);
  drain_tries_ = 0;
  out.push_back(drain{current_, {}, within});
}

void agent_core::become_finished(effects& out, instant) {
  become(phase::finished);
  says_stopped_ = false;
  out.push_back(
      report{author_.write<Finished>(current_, [&](auto b) { b.setNode(options_.node); }).any()});
  out.push_back(note{{log::level::info,
                      "workers_finished",
                      "all local workers have finished",
                      {{"generation", static_cast<std::int64_t>(current_.value)}}}});
}

} // namespace troupe::actors
