#include "actors/node_supervisor/training/worker_group/generation/generation.hpp"

#include "actors/limits.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace troupe::actors::generation_tree {

namespace {
constexpr const char* prefix = "generation ";
} // namespace

std::string name_of(generation which) {
  return fmt::format("{}{}", prefix, which.value);
}

std::optional<generation> named(const std::string& name) {
  if (name.rfind(prefix, 0) != 0)
    return std::nullopt;
  const generation which{
      std::strtoull(name.c_str() + std::char_traits<char>::length(prefix), nullptr, 10)};
  return name == name_of(which) ? std::optional(which) : std::nullopt;
}

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
  return sup::one_fate(name_of(which), std::move(children)).as(sup::restart::temporary);
}

} // namespace troupe::actors::generation_tree
