#pragma once

#include "actors/node_supervisor/training/worker_group/generation/worker/worker.hpp"
#include "runtime/sup/spec.hpp"

#include <map>
#include <memory>
#include <vector>

/// A generation on this node: the supervisor of its workers. They share one fate, since a
/// collective that has lost a rank is worth nothing: the first worker that ends badly ends them
/// all, and the generation with its reason; it ends well once all workers have. It is never started
/// again; what follows is the master's decision.
namespace troupe::actors::generation_tree {

using worker_addresses = std::map<local_rank, sup::address<worker::handle>>;

/// The generation of these slots, as a child to be started below worker_group, under its name in
/// full; `workers` are their places.
sup::tree of(generation which, const std::vector<worker_slot>& slots,
             const worker_addresses& workers, const worker::options& o,
             const training_program& what, const std::shared_ptr<ports::process_host>& processes,
             const sup::address<agent::handle>& agent);

} // namespace troupe::actors::generation_tree
