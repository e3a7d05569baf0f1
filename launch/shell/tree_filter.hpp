#pragma once

#include "runtime/sup/report.hpp"

#include <optional>
#include <string>

/// Which rows of a tree a person sees. A job of 1,000 nodes has 20,000 rows; what is wrong with it
/// is in a few of them.
namespace troupe::launch {

enum class mood {
  calm,
  over,  ///< It ended well, a while ago.
  alert, ///< It works, but had trouble a while ago, or soon will have.
  bad,   ///< It has failed, is silent or is not there.
};

/// Of the row alone, not of those below it.
mood mood_of(const sup::node_report& r);

struct tree_filter {
  /// The rows of one node, wherever its name stands; empty: all.
  std::string node;
  /// Levels below the master.
  std::optional<unsigned> depth;
  /// Only rows that are `bad` or `alert`, and those above them.
  bool troubled = false;
};

/// Nothing is left if no row passes. Where `depth` cuts, the row above says how many there are.
std::optional<sup::node_report> filtered(sup::node_report r, const tree_filter& f);

/// Rows in all, and how many of them are `bad` or `alert`.
struct tree_count {
  std::size_t rows = 0;
  std::size_t troubled = 0;
};
tree_count count(const sup::node_report& r);

} // namespace troupe::launch
