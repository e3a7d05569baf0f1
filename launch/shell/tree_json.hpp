#pragma once

#include "runtime/sup/report.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::launch {

/// What docs/actor-shell.md describes. New fields may come with the same version; a field that is
/// gone, or means something else, makes a new one.
inline constexpr auto tree_schema = "troupe.tree/1";

/// When and where the tree was asked for.
struct tree_asked {
  std::string master;
  std::string at; ///< RFC 3339, UTC.
  std::uint64_t took_us = 0;
};

/// One document on one line, without a line end. Without a tree: nothing passed the filter.
std::string tree_json(const std::optional<sup::node_report>& tree, const tree_asked& asked);

/// In place of a document when the master could not be asked.
std::string tree_error_json(const std::string& why, const tree_asked& asked);

} // namespace troupe::launch
