#pragma once

#include "diag/stacks/merged_stacks.hpp"

#include <string>

/// The stacks of all ranks for a person who has a terminal and no browser.
namespace troupe::launch {

/// What docs/actor-shell.md describes, as `tree_schema` in tree_json.hpp.
inline constexpr auto stacks_schema = "troupe.stacks/1";

/// What the master has answered.
struct stacks_seen {
  std::string directory; ///< on the machine of the master; empty: nothing was written, and
  std::string why;
  diag::merged_stacks stacks; ///< those of Python, and what is missing
};

/// How many ranks there are stacks of, where the pictures are, and what is missing of which ranks;
/// with `tree`, what the ranks do below. Nothing if no rank is known.
std::string stacks_text(const stacks_seen& seen, bool tree);

/// Merged stacks as lines, the outermost frame first: one line for each frame. Where threads part,
/// each part has a head line with its ranks, and stands further to the right. A stack of sixty
/// frames that all ranks have in common so stays at the margin.
std::string stack_lines(const diag::stack_trie& trie);

/// {"schema", "directory", "why", "stacks"} on one line; the last one is as in stacks.json.
std::string stacks_json(const stacks_seen& seen);

} // namespace troupe::launch
