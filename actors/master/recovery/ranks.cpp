#include "actors/master/recovery/ranks.hpp"

#include <algorithm>

namespace troupe::actors {

/// In three rounds, so that no later claim can take what an earlier one has: what the user has
/// configured, what a member had, what is left. Workers write files and load shards by rank, so a
/// rank that moves from node to node for no reason costs a restart more than it has to.
std::vector<seat> assign_ranks(std::vector<candidate> candidates,
                               const std::map<node_name, std::uint32_t>& previous) {
  // Within a round arrival decides, whatever order the caller's list has.
  std::sort(candidates.begin(), candidates.end(),
            [](const candidate& a, const candidate& b) { return a.arrival < b.arrival; });

  // A position that two have the same claim to goes to the earlier; the other is a newcomer.
  std::map<std::uint32_t, const candidate*> seated;
  std::vector<const candidate*> others, newcomers;
  for (const auto& c : candidates) {
    if (!c.wanted_rank)
      others.push_back(&c);
    // The roster refuses a rank that is taken, so this is for callers that do not ask it.
    else if (!seated.emplace(*c.wanted_rank, &c).second)
      newcomers.push_back(&c);
  }
  // Only after all wishes: a member gives way to a node that asked for its rank.
  for (const auto* c : others) {
    const auto held = previous.find(c->node);
    if (held == previous.end() || !seated.emplace(held->second, c).second)
      newcomers.push_back(c);
  }
  // A newcomer takes the place of a node that is gone, so that those behind it need not move up.
  std::uint32_t hole = 0;
  for (const auto* c : newcomers) {
    while (seated.count(hole))
      ++hole;
    seated.emplace(hole, c);
  }

  // Positions may still have gaps, where no newcomer came for a lost node or a wish was beyond the
  // world's end. Ranks may not: the gaps close here, in order.
  std::vector<seat> world;
  global_rank next_rank = 0;
  // torchrun counts ROLE_RANK and ROLE_WORLD_SIZE for each role, and scripts rely on it.
  std::map<std::string, std::uint32_t> workers_of; // by role
  for (const auto& [position, c] : seated) {
    auto& of_role = workers_of[c->role];
    world.push_back(seat{c->node, c->address, c->slots, static_cast<std::uint32_t>(world.size()),
                         next_rank, of_role, 0, c->which, 0, c->bulk_port});
    // A node's workers have consecutive ranks, whatever the numbers of slots of the others are.
    next_rank += c->slots;
    of_role += c->slots;
  }
  // Known only now that every worker of a role has been counted.
  std::size_t at = 0;
  for (const auto& [position, c] : seated)
    world[at++].role_world_size = workers_of.at(c->role);
  return world;
}

} // namespace troupe::actors
