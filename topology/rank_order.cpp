#include "topology/rank_order.hpp"

#include "topology/kept_ranks.hpp"
#include "topology/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace troupe::topology {

namespace {

/// The nodes of a request as numbers of the tree.
result<std::vector<std::size_t>> numbers_of(const network_tree& tree,
                                            const std::vector<std::string>& nodes) {
  std::vector<std::size_t> numbers;
  std::vector<bool> seen(tree.size(), false);
  for (const auto& name : nodes) {
    const auto number = tree.find(name);
    if (!number)
      return failure(errc::absent, fmt::format("node {} is not in the topology", name));
    if (seen[*number])
      return failure(errc::invalid, fmt::format("node {} is named twice", name));
    seen[*number] = true;
    numbers.push_back(*number);
  }
  return numbers;
}

/// Depth first, children in the order in which they are first met from node `first` on. Places in
/// `numbers`.
std::vector<std::size_t> depth_first(const network_tree& tree,
                                     const std::vector<std::size_t>& numbers, std::size_t first) {
  std::vector<std::size_t> places(numbers.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::rotate(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(first),
              places.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  // Stable sorts from the deepest level up: each leaves the order of those below it.
  for (std::size_t level = tree.levels(); level >= 1; --level) {
    std::vector<std::size_t> met(tree.size(), tree.size());
    for (std::size_t at = 0; at < places.size(); ++at) {
      auto& earliest = met[tree.group(level, numbers[places[at]])];
      earliest = std::min(earliest, at);
    }
    std::stable_sort(
        places.begin(), places.end(), [&tree, &numbers, &met, level](std::size_t a, std::size_t b) {
          return met[tree.group(level, numbers[a])] < met[tree.group(level, numbers[b])];
        });
  }
  return places;
}

/// Cuts whole groups out of an order that is depth first.
class group_filler {
 public:
  group_filler(const network_tree& tree, const std::vector<std::size_t>& numbers,
               const std::vector<std::size_t>& order, std::size_t group_size)
      : tree_(tree), numbers_(numbers), order_(order), group_size_(group_size) {}

  /// Whole groups, one after the other; `rest` is fewer nodes than a group.
  struct filled_part {
    std::vector<std::size_t> groups, rest;
  };

  filled_part all() const { return below(0, 0, order_.size()); }

 private:
  /// Of the nodes [begin, end) that hang from one switch of this level.
  filled_part below(std::size_t level, std::size_t begin, std::size_t end) const {
    filled_part sum;
    for (std::size_t next = begin; begin < end; begin = next) {
      next = end_of_child(level, begin, end);
      auto part = level == tree_.levels() ? filled_part{{}, {order_[begin]}}
                                          : below(level + 1, begin, next);
      const auto take = std::min(group_size_ - sum.rest.size(), part.rest.size());
      const auto cut = part.rest.begin() + static_cast<std::ptrdiff_t>(take);
      sum.rest.insert(sum.rest.end(), part.rest.begin(), cut);
      // Between the children that it has nodes of: so the ring leaves both least often.
      if (sum.rest.size() == group_size_) {
        sum.groups.insert(sum.groups.end(), sum.rest.begin(), sum.rest.end());
        sum.rest.assign(cut, part.rest.end());
      }
      sum.groups.insert(sum.groups.end(), part.groups.begin(), part.groups.end());
    }
    return sum;
  }

  std::size_t end_of_child(std::size_t level, std::size_t begin, std::size_t end) const {
    if (level == tree_.levels())
      return begin + 1;
    const auto group = tree_.group(level + 1, numbers_[order_[begin]]);
    while (begin < end && tree_.group(level + 1, numbers_[order_[begin]]) == group)
      ++begin;
    return begin;
  }

  const network_tree& tree_;
  const std::vector<std::size_t>& numbers_;
  const std::vector<std::size_t>& order_;
  std::size_t group_size_;
};

std::vector<std::size_t> numbers_by_rank(const std::vector<std::size_t>& numbers,
                                         const std::vector<std::size_t>& order) {
  std::vector<std::size_t> by_rank;
  by_rank.reserve(order.size());
  for (const auto place : order)
    by_rank.push_back(numbers[place]);
  return by_rank;
}

bool splits_no_more(const std::vector<crossings>& cost, const std::vector<crossings>& least) {
  return std::equal(cost.begin(), cost.end(), least.begin(), [](const auto& has, const auto& may) {
    return has.split_groups <= may.split_groups;
  });
}

/// An order that attains the optimum; with groups, of `split_groups`.
std::vector<std::size_t> best_order(const network_tree& tree,
                                    const std::vector<std::size_t>& numbers, std::size_t first,
                                    std::size_t group_size, const std::vector<crossings>& least) {
  auto order = depth_first(tree, numbers, first);
  const auto cost = cost_of(tree, numbers_by_rank(numbers, order), group_size);
  if (splits_no_more(cost, least))
    return order;
  auto filled = group_filler(tree, numbers, order, group_size).all().groups;
  // The first of an order that is depth first is the first of its group. Whole groups are moved
  // around the ring, which leaves all groups and the ring as they are.
  std::rotate(filled.begin(), std::find(filled.begin(), filled.end(), first), filled.end());
  return filled;
}

result<std::size_t> place_of_first(const rank_request& wanted) {
  if (wanted.first.empty())
    return std::size_t{0};
  const auto found = std::find(wanted.nodes.begin(), wanted.nodes.end(), wanted.first);
  if (found == wanted.nodes.end())
    return failure(errc::absent,
                   fmt::format("node {} is to have rank 0 and is not in the job", wanted.first));
  return static_cast<std::size_t>(found - wanted.nodes.begin());
}

bool within(const std::vector<crossings>& cost, const std::vector<crossings>& least,
            std::size_t more) {
  return std::equal(
      cost.begin(), cost.end(), least.begin(), [more](const auto& has, const auto& may) {
        return has.ring - may.ring <= more && has.split_groups - may.split_groups <= more;
      });
}

/// Saturates: the bound may be given as "any".
std::size_t allowance(std::size_t worse_by, std::size_t replaced) {
  const auto times = std::max<std::size_t>(replaced, 1);
  return worse_by > limits::nodes_max ? worse_by : worse_by * times;
}

} // namespace

result<rank_order> arrange(const network_tree& tree, const rank_request& wanted) {
  const auto numbers = numbers_of(tree, wanted.nodes);
  if (!numbers)
    return tl::make_unexpected(numbers.error());
  if (wanted.group_size == 0 || numbers->size() % wanted.group_size != 0)
    return failure(errc::invalid, fmt::format("{} nodes cannot be divided into groups of {}",
                                              numbers->size(), wanted.group_size));
  const auto first = place_of_first(wanted);
  if (!first)
    return tl::make_unexpected(first.error());

  rank_order made;
  if (numbers->empty())
    return made;
  const auto least = optimum_of(tree, *numbers, wanted.group_size);
  if (auto kept = kept_ranks(tree, wanted, *numbers, *first); kept) {
    const auto cost = cost_of(tree, numbers_by_rank(*numbers, kept->order), wanted.group_size);
    made.kept = within(cost, least, allowance(wanted.worse_by, kept->replaced));
    if (made.kept) {
      made.order = std::move(kept->order);
      made.replaced = kept->replaced;
    }
  }
  if (!made.kept)
    made.order = best_order(tree, *numbers, *first, wanted.group_size, least);

  const auto before = cost_of(tree, *numbers, wanted.group_size);
  const auto after = cost_of(tree, numbers_by_rank(*numbers, made.order), wanted.group_size);
  for (std::size_t level = 0; level < tree.levels(); ++level)
    made.levels.push_back({before[level], after[level], least[level]});
  return made;
}

} // namespace troupe::topology
