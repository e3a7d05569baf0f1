#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::launch {

/// The pairs that dlrover-run looks at (MetaX's fork), unless it is told others.
constexpr auto box_pairs_by_default = "0:1 2:4 3:5 6:7";

/// Two devices by their index, between which is a switch.
using box_pair = std::pair<std::uint32_t, std::uint32_t>;

/// "0:1": a word that can only be a pair.
bool is_box_pair(const std::string& word);

/// --box-pairs: "0:1 2:4", with blanks or commas between them. At least one.
result<std::vector<box_pair>> box_pairs_of(const std::string& text);

} // namespace troupe::launch
