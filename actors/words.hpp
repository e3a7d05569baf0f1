#pragma once

#include "runtime/base/ids.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// Phrases that sentences of several actors share.
namespace troupe::actors {

/// "1 node", "4 nodes".
std::string counted(std::size_t n, const char* what);

/// Names for a line on a screen: "a, b, c, d and 12 more".
std::string few_of(const std::vector<node_name>& nodes);

} // namespace troupe::actors
