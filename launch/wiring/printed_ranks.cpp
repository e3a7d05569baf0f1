#include "launch/wiring/printed_ranks.hpp"

#include "launch/wiring/topology_file.hpp"
#include "runtime/os/log/printable.hpp"
#include "topology/rank_order.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

namespace {

using topology::crossings;
using topology::level_cost;

/// One of the numbers of `crossings`, by its name.
struct number {
  const char* name;
  std::size_t crossings::*is;
};
constexpr number numbers[] = {{"ring", &crossings::ring},
                              {"line", &crossings::line},
                              {"split_groups", &crossings::split_groups}};

std::string as_table(const topology::network_tree& tree, const topology::rank_order& made,
                     std::size_t unit) {
  std::size_t widest = 4;
  for (const auto node : made.order)
    widest = std::max(widest, tree.at(node).node.size());
  auto text = fmt::format("{:>5}  {:<{}}  switches\n", "rank", "node", widest);
  for (std::size_t rank = 0; rank < made.order.size(); ++rank) {
    const auto& one = tree.at(made.order[rank]);
    text +=
        fmt::format("{:>5}  {:<{}}  {}\n", rank, one.node, widest,
                    one.switches.empty() ? "-" : fmt::format("{}", fmt::join(one.switches, "/")));
  }
  text += fmt::format("\n{:>5}  {:<12}  {:>6}  {:>5}  {:>7}\n", "level", "crossings", "before",
                      "after", "optimum");
  for (std::size_t level = 0; level < made.levels.size(); ++level)
    for (const auto& [name, is] : numbers)
      if (is != &crossings::split_groups || unit > 1)
        text += fmt::format("{:>5}  {:<12}  {:>6}  {:>5}  {:>7}\n", level + 1, name,
                            made.levels[level].before.*is, made.levels[level].after.*is,
                            made.levels[level].optimum.*is);
  if (made.levels.empty())
    text += "there are no switches: the order is that of the file\n";
  return text;
}

std::string as_json(const topology::network_tree& tree, const topology::rank_order& made) {
  boost::json::array ranks, levels;
  for (std::size_t rank = 0; rank < made.order.size(); ++rank) {
    const auto& one = tree.at(made.order[rank]);
    boost::json::array switches;
    for (const auto& name : one.switches)
      switches.emplace_back(os::valid_utf8(name));
    ranks.push_back(boost::json::object{
        {"rank", rank}, {"node", os::valid_utf8(one.node)}, {"switches", std::move(switches)}});
  }
  for (std::size_t level = 0; level < made.levels.size(); ++level) {
    boost::json::object one{{"level", level + 1}};
    for (const auto& [name, is] : numbers)
      one[name] = boost::json::object{{"before", made.levels[level].before.*is},
                                      {"after", made.levels[level].after.*is},
                                      {"optimum", made.levels[level].optimum.*is}};
    levels.push_back(std::move(one));
  }
  return boost::json::serialize(
             boost::json::object{{"ranks", std::move(ranks)}, {"levels", std::move(levels)}}) +
         "\n";
}

} // namespace

result<std::string> printed_ranks(const ranks_request& wanted) {
  const auto wrong = [&wanted](const std::string& what) {
    return failure(errc::invalid, fmt::format("--topology {}: {}", wanted.from.file, what));
  };
  const auto read = read_topology_file(wanted.from);
  if (!read)
    return wrong(read.error().what);
  const auto& tree = read->tree;
  const auto nodes = wanted.nodes.value_or(static_cast<std::uint32_t>(tree.size()));
  if (nodes > tree.size() || nodes == 0)
    return wrong(fmt::format("it has {} nodes, and {} are wanted", tree.size(), nodes));
  topology::rank_request request;
  for (std::size_t node = 0; node < nodes; ++node)
    request.nodes.push_back(tree.at(node).node);
  request.group_size = wanted.unit;
  const auto made = topology::arrange(tree, request);
  if (!made)
    return wrong(made.error().what);
  return wanted.json ? as_json(tree, *made) : as_table(tree, *made, wanted.unit);
}

} // namespace troupe::launch
