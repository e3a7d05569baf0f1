#include "actors/node_supervisor/checkpoint_saver/replicator/replicator_core.hpp"

#include "ckpt/limits.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

replicator_core::replicator_core(node_name node) : node_(std::move(node)) {}

replicator_core::effects replicator_core::copies_requested(instant,
                                                           const ckpt::snapshot_to_copy& s) {
  if (copies_.count(s.key()) != 0)
    return {};
  // Finalized at once, as a failure: a slot that is refused in silence would never be free again.
  if (copies_.size() >= limits::persist_requests_max)
    return {
        finalize{s, failure(errc::overloaded,
                            fmt::format("step {} of rank {} is not copied: {} other snapshots of "
                                        "node {} are being copied",
                                        s.step, s.rank, copies_.size(), node_))}};
  copies_.insert(s.key());
  return {copy{s}};
}

replicator_core::effects replicator_core::copied(instant, const ckpt::snapshot_to_copy& s,
                                                 const result<void>& how) {
  if (copies_.erase(s.key()) == 0)
    return {};
  effects out;
  out.push_back(finalize{s, how});
  // Not tried again: the next save is replicated, and by then this snapshot is old.
  if (!how)
    out.push_back(note{{log::level::warning,
                        "step_not_copied",
                        fmt::format("step {} of rank {} is not held by other nodes: {}", s.step,
                                    s.rank, how.error().what),
                        {{"step", static_cast<std::int64_t>(s.step)},
                         {"rank", static_cast<std::int64_t>(s.rank)},
                         {"generation", static_cast<std::int64_t>(s.made_by.value)}}}});
  return out;
}

std::string replicator_core::in_words() const {
  return copies_.empty()
             ? "nothing is to be replicated"
             : fmt::format("{} snapshot(s) being copied to other nodes", copies_.size());
}

} // namespace troupe::actors
