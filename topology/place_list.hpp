#pragma once

#include "topology/limits.hpp"
#include "topology/located_json.hpp"
#include "topology/network_tree.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::topology {

/// Places as they are read, checked one by one while their lines are known.
class place_list {
 public:
  explicit place_list(json_problem& problem) : problem_(problem) {}

  void add(place one, std::uint32_t line) {
    if (const auto good = check(one); !good)
      return problem_.found(line, good.error().what);
    if (places_.size() == limits::nodes_max)
      return problem_.found(line, fmt::format("more than {} nodes", limits::nodes_max));
    take(one.node, line);
    for (const auto& name : one.also)
      if (name != one.node)
        take(name, line);
    places_.push_back(std::move(one));
  }

  result<network_tree> tree() && {
    if (problem_.first())
      return tl::make_unexpected(*problem_.first());
    return network_tree::of(std::move(places_));
  }

 private:
  void take(const std::string& name, std::uint32_t line) {
    const auto [earlier, fresh] = lines_.emplace(name, line);
    if (!fresh)
      problem_.found(line, fmt::format("node {} is on line {} already", name, earlier->second));
  }

  json_problem& problem_;
  std::vector<place> places_;
  std::map<std::string, std::uint32_t> lines_;
};

} // namespace troupe::topology
