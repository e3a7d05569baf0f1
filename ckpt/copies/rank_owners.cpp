#include "ckpt/copies/rank_owners.hpp"

#include "messages/node_names.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::ckpt {

bool rank_owners::runs(const std::string& node, std::uint64_t rank) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), rank);
  const auto at = static_cast<std::size_t>(end - ends_.begin());
  return at < nodes_.size() && nodes_[at] == messages::fingerprint(node);
}

/// A link to a master that has a successor may still bring an older one.
void rank_owners::learn(const messages::msg<messages::RankOwners>& m) {
  if (m.envelope().about.value < generation_)
    return;
  auto says = m.read();
  generation_ = m.envelope().about.value;
  nodes_.clear();
  for (const auto node : says->getNodes())
    nodes_.push_back(node);
  ends_.clear();
  std::uint64_t end = 0;
  for (const auto slots : says->getSlots())
    ends_.push_back(end += slots);
}

std::optional<std::string> rank_owners::validation_error(messages::CopyBegin::Reader says,
                                                         const std::string& node) const {
  const auto ranks = says.getRanks();
  if (says.getSource() >= ranks.size())
    return fmt::format("member {} of a group of {} does not exist", says.getSource(), ranks.size());
  const auto rank = ranks[says.getSource()];
  if (generation_ == 0)
    return std::string("this node does not know yet which node runs which rank");
  if (runs(node, rank))
    return std::nullopt;
  return fmt::format("node {} gives as rank {}, which it does not run in generation {}", node, rank,
                     count_of(generation{generation_}));
}

} // namespace troupe::ckpt
