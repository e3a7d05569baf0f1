#pragma once

#include "runtime/base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Phrases that sentences of several actors share.
namespace troupe::actors {

/// "1 node", "4 nodes".
std::string counted(std::size_t n, const char* what);

/// MIN:MAX of --nnodes: "2 nodes", "1 to 4 nodes".
std::string nodes_in_words(std::uint32_t nodes_min, std::uint32_t nodes_max);

/// Names for a line on a screen: "a, b, c, d and 12 more".
std::string few_of(const std::vector<node_name>& nodes);

} // namespace troupe::actors
