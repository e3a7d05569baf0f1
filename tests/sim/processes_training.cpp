// What the ranks of a world do together.

#include "tests/sim/processes.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

void trainers::join(std::uint64_t process) {
  const auto found = living_.find(process);
  if (found == living_.end())
    return;
  const auto which = record(process).which;
  auto& g = groups_[which];
  g.world_size = found->second.world_size;
  found->second.joined = true;
  if (g.broken) {
    miss_a_peer(process);
    return;
  }
  g.joined.insert(process);
  if (g.joined.size() == g.world_size)
    become_together(which, g);
}

void trainers::become_together(generation which, group& g) {
  g.together_since = world_.events.now();
  world_.write("-", fmt::format("run    g{} trains on {} ranks", which.value, g.world_size));
  world_.events.in(std::max(options_.training - done_, duration(10ms)),
                   [this, which] { finish_together(which); });
  options_.when_together(which);
  if (g.asked)
    save_and_end(which);
}

void trainers::finish_together(generation which) {
  auto& g = groups_[which];
  if (!g.together_since || g.broken)
    return;
  done_ = options_.training;
  options_.before_end(which);
  g.together_since.reset();
  for (const auto process : g.joined)
    end_in(world_.between(1ms, 50ms), process, {});
}

/// At the end of a step, which all ranks make together.
void trainers::save_and_end(generation which) {
  world_.events.in(world_.between(1ms, options_.saves_within), [this, which] {
    auto& g = groups_[which];
    if (!g.together_since || g.broken)
      return;
    done_ = std::min(done_ + (world_.events.now() - *g.together_since), options_.training);
    g.together_since.reset();
    for (const auto process : g.joined)
      end_in(world_.between(1ms, 50ms), process, {});
  });
}

void trainers::break_up(generation which, std::uint64_t first_lost) {
  auto& g = groups_[which];
  if (std::exchange(g.broken, true))
    return;
  if (g.together_since) {
    const auto since = world_.events.now() - *g.together_since;
    done_ += since / options_.checkpoint_every * options_.checkpoint_every;
    done_ = std::min(done_, options_.training);
    g.together_since.reset();
  }
  for (const auto process : g.joined)
    if (process != first_lost && living_.count(process))
      miss_a_peer(process);
}

void trainers::miss_a_peer(std::uint64_t process) {
  if (options_.hangs == 0 || !world_.random.chance(options_.hangs))
    end_in(world_.between(options_.notices_min, options_.notices_max), process, {false, 1});
}

} // namespace troupe::sim
