#include "actors/master/recovery/ranks.hpp"

#include <algorithm>

namespace troupe::actors {

std::vector<seat> assign_ranks(std::vector<candidate> candidates,
                               const std::map<node_name, std::uint32_t>& previous) {
  std::sort(candidates.begin(), candidates.end(),
            [](const candidate& a, const candidate& b) { return a.arrival < b.arrival; });

  // A position that two have the same claim to goes to the earlier; the other is a newcomer.
  std::map<std::uint32_t, const candidate*> seated;
  std::vector<const candidate*> others, newcomers;
  for (const auto& c : candidates) {
    if (!c.wanted_rank)
      others.push_back(&c);
    else if (!seated.emplace(*c.wanted_rank, &c).second)
      newcomers.push_back(&c);
  }
  for (const auto* c : others) {
    const auto held = previous.find(c->node);
    if (held == previous.end() || !seated.emplace(held->second, c).second)
      newcomers.push_back(c);
  }
  std::uint32_t hole = 0;
  for (const auto* c : newcomers) {
    while (seated.count(hole))
      ++hole;
    seated.emplace(hole, c);
  }

  std::vector<seat> world;
  global_rank next_rank = 0;
  std::map<std::string, std::uint32_t> workers_of; // by role
  for (const auto& [position, c] : seated) {
    auto& of_role = workers_of[c->role];
    world.push_back(seat{c->node, c->address, c->slots, static_cast<std::uint32_t>(world.size()),
                         next_rank, of_role, 0, c->which});
    next_rank += c->slots;
    of_role += c->slots;
  }
  std::size_t at = 0;
  for (const auto& [position, c] : seated)
    world[at++].role_world_size = workers_of.at(c->role);
  return world;
}

} // namespace troupe::actors
