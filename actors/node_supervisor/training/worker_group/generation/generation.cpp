#include "actors/node_supervisor/training/worker_group/generation/generation.hpp"

#include "actors/limits.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

namespace troupe::actors::generation_tree {

sup::tree of(generation which, const std::vector<worker_slot>& slots,
             const worker_addresses& workers, const worker::options& o,
             const training_program& what, const std::shared_ptr<ports::process_host>& processes,
             const sup::address<agent::handle>& agent) {
  std::vector<sup::tree> children;
  for (const auto& s : slots)
    // The worker itself sees to it that its process ends in time; what this limit adds is an end
    // for a process that the kernel holds.
    children.push_back(sup::worker(fmt::format("rank {}", s.place.rank), sup::restart::temporary,
                                   sup::stop_within{o.stop_within + limits::held_by_kernel_within},
                                   workers.at(s.place.local),
                                   [s, o, what, processes, agent](sup::context& ctx) {
                                     return worker::start(ctx, s, o, what, processes, agent);
                                   }));
  return sup::one_fate(in_full(which), std::move(children)).as(sup::restart::temporary);
}

} // namespace troupe::actors::generation_tree
