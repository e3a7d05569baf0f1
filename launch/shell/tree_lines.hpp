#pragma once

#include "launch/shell/tree_filter.hpp"
#include "runtime/sup/report.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// A tree as lines for a person. A healthy actor is one calm line in columns: name, state, uptime,
/// what it does. A row that is in trouble breaks the columns with the reason in front, so that the
/// eye finds it.
namespace troupe::launch {

struct tree_line {
  std::string branches; ///< What connects it with the rows above.
  std::string text;
  mood how = mood::calm;
};

/// One line per row, none wider than `width` columns; 0: as wide as they are. Children that have
/// ended well share one line.
std::vector<tree_line> lay_out(const sup::node_report& tree, std::size_t width);

/// The lines as text, each with a line end; with colours for a terminal or without.
std::string painted(const std::vector<tree_line>& lines, bool colours);

/// A span of time in five columns at most: "412ms", "47s", "12m", "5h", "12d".
std::string short_time(duration d);

} // namespace troupe::launch
