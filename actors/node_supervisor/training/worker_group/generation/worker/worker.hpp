#pragma once

#include "actors/node_supervisor/training/agent/agent.hpp"
#include "actors/node_supervisor/training_program.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>

/// Owns one training process: starts or adopts it when it starts itself, stops it when its
/// supervisor orders the worker to stop, and tells the agent how it ended before it ends itself
/// (worker_core.hpp).
///
/// The order says why. *Asked* or *sibling*: the process's work is to end, so it gets SIGTERM, or
/// the signal in the order's detail, and SIGKILL when its time is up. *Shutdown*: only the tree
/// goes down, but the process may not outlive its actor and is killed at once. (When the whole
/// supervisor process dies no destructor runs, and the next one adopts the process.)
///
/// State: nothing survives.
namespace troupe::actors::worker {

using handle = sup::protocol<sup::tell<messages::msg<messages::WorkerSignal>>>;

struct options {
  /// From the first signal to SIGKILL, where the order does not say.
  duration stop_within = limits::stop_workers_within;
};

handle start(sup::context& ctx, const worker_slot& at, const options& o,
             const training_program& what, std::shared_ptr<ports::process_host> processes,
             const sup::address<agent::handle>& agent);

} // namespace troupe::actors::worker
