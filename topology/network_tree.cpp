#include "topology/network_tree.hpp"

#include "topology/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace troupe::topology {

namespace {

/// Names are shown in lines of a log.
std::string wrong_with(const std::string& name) {
  if (name.empty() || name.size() > limits::name_max)
    return fmt::format("has {} characters; 1 to {} are allowed", name.size(), limits::name_max);
  for (const auto character : name)
    if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f)
      return "has control characters";
  return {};
}

/// The groups of one level, given those of the level above it.
std::vector<std::uint32_t> groups_at(std::size_t level, const std::vector<place>& places,
                                     const std::vector<std::uint32_t>& above) {
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> of_switch;
  std::vector<std::uint32_t> groups(places.size());
  std::uint32_t next = 0;
  for (std::size_t node = 0; node < places.size(); ++node) {
    const auto& switches = places[node].switches;
    if (switches.size() < level) {
      groups[node] = next++;
      continue;
    }
    const auto [found, fresh] = of_switch.try_emplace({above[node], switches[level - 1]}, next);
    next += fresh ? 1 : 0;
    groups[node] = found->second;
  }
  return groups;
}

} // namespace

result<void> check(const place& one) {
  if (const auto wrong = wrong_with(one.node); !wrong.empty())
    return failure(errc::invalid, "a node's name " + wrong);
  if (one.switches.size() > limits::switches_above_max)
    return failure(errc::invalid,
                   fmt::format("{} switches are above node {}; {} are allowed", one.switches.size(),
                               one.node, limits::switches_above_max));
  for (const auto& name : one.switches)
    if (const auto wrong = wrong_with(name); !wrong.empty())
      return failure(errc::invalid,
                     fmt::format("the name of a switch above node {} {}", one.node, wrong));
  return {};
}

result<network_tree> network_tree::of(std::vector<place> places) {
  if (places.size() > limits::nodes_max)
    return failure(errc::invalid, fmt::format("the network has {} nodes; {} are allowed",
                                              places.size(), limits::nodes_max));
  std::size_t deepest = 0;
  for (const auto& one : places) {
    if (auto good = check(one); !good)
      return tl::make_unexpected(std::move(good.error()));
    deepest = std::max(deepest, one.switches.size());
  }

  network_tree made;
  made.by_name_.resize(places.size());
  std::iota(made.by_name_.begin(), made.by_name_.end(), 0u);
  std::sort(made.by_name_.begin(), made.by_name_.end(),
            [&places](auto a, auto b) { return places[a].node < places[b].node; });
  const auto twice =
      std::adjacent_find(made.by_name_.begin(), made.by_name_.end(),
                         [&places](auto a, auto b) { return places[a].node == places[b].node; });
  if (twice != made.by_name_.end())
    return failure(errc::invalid, fmt::format("node {} is there twice", places[*twice].node));

  std::vector<std::uint32_t> above(places.size(), 0);
  for (std::size_t level = 1; level <= deepest; ++level) {
    above = groups_at(level, places, above);
    made.groups_.push_back(above);
  }
  made.places_ = std::move(places);
  return made;
}

std::optional<std::size_t> network_tree::find(std::string_view node) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), node,
                       [this](auto number, auto name) { return places_[number].node < name; });
  if (found == by_name_.end() || places_[*found].node != node)
    return std::nullopt;
  return *found;
}

} // namespace troupe::topology
