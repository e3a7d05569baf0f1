#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

std::string counted(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string nodes_in_words(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  return nodes_min == nodes_max ? counted(nodes_max, "node")
                                : fmt::format("{} to {} nodes", nodes_min, nodes_max);
}

std::string few_of(const std::vector<node_name>& nodes) {
  constexpr std::size_t told = 4;
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(told, nodes.size()));
  auto text = fmt::format("{}", fmt::join(nodes.begin(), end, ", "));
  if (nodes.size() > told)
    text += fmt::format(" and {} more", nodes.size() - told);
  return text;
}

} // namespace troupe::actors
