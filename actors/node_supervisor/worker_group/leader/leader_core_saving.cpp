// How leader_core finishes: not before what the processes wanted saved is settled.

#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

/// The job is over when all nodes have finished, and with it whoever could still complete a step.
leader_core::effects leader_core::drained(instant now, generation which,
                                          const std::optional<error>& trouble) {
  effects out;
  if (phase_ != phase::saving || which != current_)
    return out;
  if (trouble && !outcome_ && ++drain_tries_ < limits::drain_tries_max) {
    out.push_back(drain{which, limits::drain_again_after});
    return out;
  }
  if (trouble)
    out.push_back(
        note{{log::level::warning,
              "not_drained",
              "nobody can say whether the last checkpoints are complete: " + trouble->what,
              {{"generation", static_cast<std::int64_t>(which.value)}}}});
  if (outcome_)
    become_over(out, now);
  else
    become_finished(out, now);
  return out;
}

void leader_core::become_saving(effects& out, duration within) {
  phase_ = phase::saving;
  drain_tries_ = 0;
  out.push_back(drain{current_, {}, within});
}

/// Nothing is left of what this node ran, and it leaves.
void leader_core::become_gone(effects& out, instant now) {
  if (saves_last_ && started_ != generation{})
    become_saving(out, limits::last_saves_within);
  else
    become_over(out, now);
}

void leader_core::become_finished(effects& out, instant) {
  phase_ = phase::finished;
  out.push_back(
      report{author_.write<Finished>(current_, [&](auto b) { b.setNode(options_.node); }).any()});
  out.push_back(note{{log::level::info,
                      "workers_finished",
                      "all local workers have finished",
                      {{"generation", static_cast<std::int64_t>(current_.value)}}}});
}

} // namespace troupe::actors
