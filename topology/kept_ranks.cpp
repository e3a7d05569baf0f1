#include "topology/kept_ranks.hpp"

#include <map>
#include <set>
#include <string_view>

namespace troupe::topology {

namespace {

constexpr auto free_rank = static_cast<std::size_t>(-1);

/// Gives free ranks to newcomers.
class newcomer_seats {
 public:
  newcomer_seats(const network_tree& tree, const std::vector<std::size_t>& numbers,
                 std::vector<std::size_t>& order)
      : tree_(tree), numbers_(numbers), order_(order) {
    std::vector<bool> has_rank(numbers.size(), false);
    for (const auto place : order)
      if (place != free_rank)
        has_rank[place] = true;
    for (std::size_t place = 0; place < numbers.size(); ++place)
      if (!has_rank[place])
        newcomers_.insert(place);
  }

  std::size_t count() const { return newcomers_.size(); }

  void give(std::size_t rank, std::size_t place) {
    order_[rank] = place;
    newcomers_.erase(place);
  }

  /// From the deepest level up: ranks whose neighbours share a switch with a newcomer. Then what is
  /// left, in order.
  void give_all() {
    for (std::size_t level = tree_.levels(); level >= 1 && !newcomers_.empty(); --level)
      give_at(level);
    for (auto& place : order_)
      if (place == free_rank) {
        place = *newcomers_.begin();
        newcomers_.erase(newcomers_.begin());
      }
  }

 private:
  void give_at(std::size_t level) {
    std::map<std::uint32_t, std::set<std::size_t>> by_group;
    for (const auto place : newcomers_)
      by_group[tree_.group(level, numbers_[place])].insert(place);
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      if (order_[rank] != free_rank)
        continue;
      for (const auto beside : {before(rank), after(rank)}) {
        if (beside == free_rank)
          continue;
        const auto found = by_group.find(tree_.group(level, numbers_[beside]));
        if (found == by_group.end() || found->second.empty())
          continue;
        const auto place = *found->second.begin();
        found->second.erase(place);
        give(rank, place);
        break;
      }
    }
  }

  std::size_t before(std::size_t rank) const {
    return order_[rank == 0 ? order_.size() - 1 : rank - 1];
  }
  std::size_t after(std::size_t rank) const { return order_[(rank + 1) % order_.size()]; }

  const network_tree& tree_;
  const std::vector<std::size_t>& numbers_;
  std::vector<std::size_t>& order_;
  std::set<std::size_t> newcomers_;
};

} // namespace

std::optional<kept_order> kept_ranks(const network_tree& tree, const rank_request& wanted,
                                     const std::vector<std::size_t>& numbers, std::size_t first) {
  if (wanted.previous.empty() || wanted.previous.size() != wanted.nodes.size())
    return std::nullopt;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t place = 0; place < wanted.nodes.size(); ++place)
    places.emplace(wanted.nodes[place], place);
  kept_order kept;
  for (const auto& name : wanted.previous) {
    const auto found = places.find(name);
    kept.order.push_back(found == places.end() ? free_rank : found->second);
    // Once only, were it named twice.
    if (found != places.end())
      places.erase(found);
  }
  newcomer_seats seats(tree, numbers, kept.order);
  kept.replaced = seats.count();
  if (kept.order[0] == free_rank && places.count(wanted.nodes[first]) != 0)
    seats.give(0, first);
  if (kept.order[0] != free_rank && kept.order[0] != first)
    return std::nullopt;
  if (kept.order[0] == free_rank)
    return std::nullopt; // `first` survives, with another rank
  seats.give_all();
  return kept;
}

} // namespace troupe::topology
