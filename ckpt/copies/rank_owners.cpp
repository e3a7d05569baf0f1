#include "runtime/os/copies/rank_owners.hpp"

#include "messages/node_names.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe::ckpt {

namespace {

/// Snapshots of a generation are given while it lasts, and a little longer.
constexpr std::size_t worlds_max = 8;

} // namespace

bool rank_owners::known_world::runs(const std::string& node, std::uint64_t rank) const {
  const auto end = std::upper_bound(ends.begin(), ends.end(), rank);
  const auto at = static_cast<std::size_t>(end - ends.begin());
  return at < nodes.size() && nodes[at] == messages::fingerprint(node);
}

void rank_owners::learn(const messages::msg<messages::RankOwners>& m) {
  auto says = m.read();
  known_world known;
  known.generation = m.envelope().about.value;
  for (const auto node : says->getNodes())
    known.nodes.push_back(node);
  std::uint64_t end = 0;
  for (const auto slots : says->getSlots())
    known.ends.push_back(end += slots);
  const std::lock_guard lock(mutex_);
  worlds_.erase(
      std::remove_if(worlds_.begin(), worlds_.end(),
                     [&known](const known_world& w) { return w.generation == known.generation; }),
      worlds_.end());
  worlds_.push_back(std::move(known));
  if (worlds_.size() > worlds_max)
    worlds_.pop_front();
}

std::optional<std::string> rank_owners::validation_error(messages::CopyBegin::Reader says,
                                                         const std::string& node) const {
  const auto ranks = says.getRanks();
  if (says.getSource() >= ranks.size())
    return fmt::format("member {} of a group of {} does not exist", says.getSource(), ranks.size());
  const auto rank = ranks[says.getSource()];
  const std::lock_guard lock(mutex_);
  if (worlds_.empty())
    return std::string("this node does not know yet which node runs which rank");
  auto world = std::find_if(worlds_.begin(), worlds_.end(), [&says](const known_world& w) {
    return w.generation == says.getKey().getGeneration();
  });
  if (world == worlds_.end())
    world = std::prev(worlds_.end());
  if (world->runs(node, rank))
    return std::nullopt;
  return fmt::format("node {} gives as rank {}, which it does not run in generation {}", node, rank,
                     count_of(generation{world->generation}));
}

} // namespace troupe::ckpt
