#pragma once

#include <string>
#include <vector>

namespace troupe::launch {

/// The candidate that was probably meant, by the fewest letters that differ, are missing, are too
/// many or have changed places with their neighbour (optimal string alignment). Empty: none is
/// near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

} // namespace troupe::launch
