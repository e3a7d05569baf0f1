#include "actors/master/recovery/topology_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace troupe::actors {

namespace {

/// With two nodes or three each ring has the same neighbours. ModelArts begins with three.
constexpr std::size_t nodes_least = 3;
constexpr std::size_t ranks_in_a_line = 16;

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "node-7" of "node-7.cluster.local". An address is no name with a domain.
std::string_view short_name(std::string_view name) {
  const auto dot = name.find('.');
  const bool is_address =
      is_digits(name.substr(0, dot)) || name.find(':') != std::string_view::npos;
  return is_address ? name : name.substr(0, dot);
}

/// A launcher that was given no name has that of its machine, with its own number behind it.
std::string_view host_in(std::string_view node) {
  const auto dash = node.rfind('-');
  return dash != std::string_view::npos && is_digits(node.substr(dash + 1)) ? node.substr(0, dash)
                                                                            : node;
}

/// "2,10", from the top of the network down.
template<class Number>
std::string by_level(const topology::rank_order& order, const Number& number) {
  std::string text;
  for (const auto& level : order.levels)
    text += fmt::format("{}{}", text.empty() ? "" : ",", number(level));
  return text;
}

std::vector<std::string> names_by_rank(const std::map<node_name, std::uint32_t>& previous) {
  std::vector<std::string> names(previous.size());
  for (const auto& [node, rank] : previous) {
    if (rank >= names.size())
      return {};
    names[rank] = node;
  }
  return names;
}

log::event in_words(const topology::rank_order& order, std::size_t unknown) {
  const auto before = by_level(order, [](const auto& level) { return level.before.ring; });
  const auto after = by_level(order, [](const auto& level) { return level.after.ring; });
  const auto optimum = by_level(order, [](const auto& level) { return level.optimum.ring; });
  const bool kept = order.kept;
  const auto about_kept = !kept                 ? ""
                          : order.replaced == 0 ? "; all nodes kept their ranks"
                          : order.replaced == 1
                              ? "; the nodes beside the one that was replaced kept their ranks"
                              : "; the nodes beside those that were replaced kept their ranks";
  return {
      log::level::notice,
      "ranks_by_topology",
      fmt::format("ranks follow the network: of {} nodes the ring leaves a switch {} times "
                  "instead of {} (at best {}; from the top level down){}{}",
                  order.order.size(), after, before, optimum, about_kept,
                  unknown == 0 ? "" : fmt::format("; where {} of them hang is not known", unknown)),
      {{"before", before}, {"after", after}, {"optimum", optimum}, {"kept", kept}}};
}

} // namespace

log::event topology_order::known(const topology_answer& answer) {
  settled_ = true;
  from_ = answer.from;
  if (!answer.tree)
    return left_as_it_is(log::level::warning, answer.tree.error().what);
  tree_ = *answer.tree;
  short_names_.clear();
  std::set<std::string, std::less<>> ambiguous;
  for (std::size_t node = 0; node < tree_->size(); ++node) {
    const auto name = std::string(short_name(tree_->at(node).node));
    if (!short_names_.emplace(name, node).second)
      ambiguous.insert(name);
  }
  for (const auto& name : ambiguous)
    short_names_.erase(name);
  return {log::level::info,
          "topology_read",
          fmt::format("{} is taken for {}: {} nodes below {} levels of switches", from_,
                      answer.taken_for, tree_->size(), tree_->levels()),
          {{"file", from_},
           {"nodes", static_cast<std::int64_t>(tree_->size())},
           {"levels", static_cast<std::int64_t>(tree_->levels())}}};
}

std::optional<log::event> topology_order::over(instant now) {
  if (!awaited() || now < until_)
    return std::nullopt;
  settled_ = true;
  return left_as_it_is(log::level::warning,
                       fmt::format("the disk has not answered for {}",
                                   troupe::in_words(options_.wait + limits::topology_read_slack)));
}

log::event topology_order::left_as_it_is(log::level how, const std::string& why) {
  return {how,
          "topology_unusable",
          from_.empty()
              ? fmt::format("ranks do not follow the network: {}", why)
              : fmt::format("ranks do not follow the network (--topology {}): {}", from_, why),
          {{"reason", why}}};
}

std::optional<log::event> topology_order::once(log::event one) {
  if (one.text == std::exchange(told_last_, one.text))
    one.severity = log::level::info;
  return one;
}

std::optional<std::size_t> topology_order::find(const candidate& one) const {
  std::vector<std::string_view> called{one.node, host_in(one.node), one.address};
  called.insert(called.end(), one.machine.begin(), one.machine.end());
  for (const auto name : called)
    if (const auto found = tree_->find(name))
      return found;
  for (const auto name : called)
    if (const auto found = short_names_.find(short_name(name)); found != short_names_.end())
      return found->second;
  return std::nullopt;
}

std::vector<std::string> topology_order::switches_above(const candidate& one) const {
  if (tree_)
    if (const auto found = find(one))
      return tree_->at(*found).switches;
  return one.switches;
}

result<topology::rank_order>
topology_order::order_of(const std::vector<candidate>& nodes, const std::vector<seat>& as_without,
                         const std::map<node_name, std::uint32_t>& previous) const {
  std::vector<topology::place> places;
  for (const auto& one : nodes)
    places.push_back({one.node, switches_above(one)});
  const auto tree = topology::network_tree::of(std::move(places));
  if (!tree)
    return tl::make_unexpected(tree.error());
  if (tree->levels() == 0)
    return failure(errc::absent,
                   tree_ ? fmt::format("above none of {} nodes it has a switch", nodes.size())
                         : std::string("no node says which switches are above it"));
  topology::rank_request wanted;
  for (const auto& one : as_without)
    wanted.nodes.push_back(one.node);
  // The node that had rank 0, if it is there; else the first. The workers' store may be at rank 0's
  // node, and people look for the log there.
  wanted.first = wanted.nodes.front();
  wanted.group_size = unit_;
  wanted.previous = names_by_rank(previous);
  wanted.worse_by = options_.worse_by;
  return topology::arrange(*tree, wanted);
}

topology_order::world topology_order::arrange(const std::vector<candidate>& nodes,
                                              const std::map<node_name, std::uint32_t>& previous) {
  world made{assign_ranks(nodes, previous), std::nullopt, {}};
  if (order_by_network(made, nodes, previous))
    list_ranks(made, nodes, log::level::notice);
  else
    list_ranks(made, nodes, log::level::info);
  return made;
}

bool topology_order::order_by_network(world& made, const std::vector<candidate>& nodes,
                                      const std::map<node_name, std::uint32_t>& previous) {
  const auto says = [](const candidate& one) { return !one.switches.empty(); };
  if (nodes.size() < nodes_least || (!tree_ && std::none_of(nodes.begin(), nodes.end(), says)))
    return false;
  const auto asks = [](const candidate& one) { return one.wanted_rank && !one.rank_is_found; };
  if (const auto asking = std::find_if(nodes.begin(), nodes.end(), asks); asking != nodes.end()) {
    made.told =
        once(left_as_it_is(log::level::notice, fmt::format("node {} asks for rank {} (--node-rank)",
                                                           asking->node, *asking->wanted_rank)));
    return false;
  }
  const auto order = order_of(nodes, made.seats, previous);
  if (!order) {
    made.told = once(left_as_it_is(log::level::warning, order.error().what));
    return false;
  }
  std::map<node_name, std::uint32_t> rank_of;
  for (std::size_t rank = 0; rank < order->order.size(); ++rank)
    rank_of[made.seats[order->order[rank]].node] = static_cast<std::uint32_t>(rank);
  auto placed = nodes;
  for (auto& one : placed)
    one.wanted_rank = rank_of.at(one.node);
  made.seats = assign_ranks(std::move(placed), {});
  for (auto& one : made.seats)
    one.master_index = static_cast<std::uint32_t>(order->order.front());
  const auto unknown = [this](const candidate& one) { return switches_above(one).empty(); };
  made.told = once(in_words(
      *order, static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), unknown))));
  return true;
}

/// Of a world of one node there is nothing to tell, and of each line only what is new. A screen has
/// no room for thousands of nodes: then the lines are for those that ask for all.
void topology_order::list_ranks(world& made, const std::vector<candidate>& nodes, log::level how) {
  constexpr std::size_t told_at_most = 1'024;
  if (made.seats.size() < 2)
    return;
  std::map<node_name, const candidate*> by_name;
  for (const auto& one : nodes)
    by_name.emplace(one.node, &one);
  if (made.seats.size() > told_at_most)
    how = log::level::info;
  listed_.resize((made.seats.size() + ranks_in_a_line - 1) / ranks_in_a_line);
  for (std::size_t line = 0; line < listed_.size(); ++line) {
    const auto first = line * ranks_in_a_line;
    const auto end = std::min(first + ranks_in_a_line, made.seats.size());
    std::string all;
    for (auto rank = first; rank < end; ++rank) {
      const auto& one = made.seats[rank];
      const auto& machine = by_name.at(one.node)->machine;
      all += fmt::format("{}{} ({}{})", all.empty() ? "" : ", ", one.node, one.address,
                         machine.empty() ? "" : fmt::format(" on {}", fmt::join(machine, "/")));
    }
    const auto digest = std::hash<std::string>{}(all) + static_cast<std::size_t>(how);
    if (std::exchange(listed_[line], digest) == digest)
      continue;
    made.list.push_back({how,
                         "nodes_by_rank",
                         fmt::format("nodes of rank {} to {}: {}", first, end - 1, all),
                         {{"first", static_cast<std::int64_t>(first)},
                          {"last", static_cast<std::int64_t>(end - 1)},
                          {"names", all}}});
  }
}

} // namespace troupe::actors
