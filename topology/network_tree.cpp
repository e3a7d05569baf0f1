#include "topology/network_tree.hpp"

#include "topology/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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
  if (one.also.size() > limits::node_names_max)
    return failure(errc::invalid, fmt::format("node {} has {} further names; {} are allowed",
                                              one.node, one.also.size(), limits::node_names_max));
  for (const auto& name : one.also)
    if (const auto wrong = wrong_with(name); !wrong.empty())
      return failure(errc::invalid, fmt::format("a further name of node {} {}", one.node, wrong));
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
  made.places_ = std::move(places);
  if (auto sorted = made.sort_names(); !sorted)
    return tl::make_unexpected(std::move(sorted.error()));

  std::vector<std::uint32_t> above(made.size(), 0);
  for (std::size_t level = 1; level <= deepest; ++level) {
    above = groups_at(level, made.places_, above);
    made.groups_.push_back(above);
  }
  return made;
}

const std::string& network_tree::text_of(name_of one) const {
  const auto& of = places_[one.node];
  return one.which == 0 ? of.node : of.also[one.which - 1];
}

result<void> network_tree::sort_names() {
  for (std::uint32_t node = 0; node < places_.size(); ++node)
    for (std::uint32_t which = 0; which <= places_[node].also.size(); ++which)
      by_name_.push_back({node, which});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](name_of a, name_of b) { return text_of(a) < text_of(b); });
  // A node may be called by its address and have that again as an address.
  const auto same = [this](name_of a, name_of b) {
    return a.node == b.node && text_of(a) == text_of(b);
  };
  by_name_.erase(std::unique(by_name_.begin(), by_name_.end(), same), by_name_.end());
  const auto twice =
      std::adjacent_find(by_name_.begin(), by_name_.end(),
                         [this](name_of a, name_of b) { return text_of(a) == text_of(b); });
  if (twice != by_name_.end())
    return failure(errc::invalid, fmt::format("node {} is there twice", text_of(*twice)));
  return {};
}

std::optional<std::size_t> network_tree::find(std::string_view node) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), node,
                       [this](name_of one, auto name) { return text_of(one) < name; });
  if (found == by_name_.end() || text_of(*found) != node)
    return std::nullopt;
  return found->node;
}

} // namespace troupe::topology
