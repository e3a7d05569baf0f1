#pragma once

#include "diag/stacks/merged_stacks.hpp"
#include "diag/stacks/stack_trie.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// A trie as it is shown: the same for the same stacks, in whatever order they were merged.
namespace troupe::diag {

struct ordered_stacks {
  struct row {
    stack_trie::node_id node = stack_trie::root;
    std::uint32_t depth = 0;  ///< 0: a state, a role, or an outermost frame
    std::uint32_t parent = 0; ///< the row of it; at depth 0, its own
    std::uint64_t begin = 0;  ///< where it stands from the left, in different stacks,
    std::uint64_t stacks = 0; ///< and how many of them come through it, or end in it
  };
  /// Each above its children; of siblings the one with the fewest ranks first.
  std::vector<row> rows;
  std::uint64_t stacks = 0;  ///< different ones in all, with the states
  std::uint64_t states = 0;  ///< of them those that are a state
  std::uint64_t threads = 0; ///< each of them has one state
  std::uint32_t depth = 0;   ///< levels
};

ordered_stacks ordered(const stack_trie& trie);

/// "func@source": what a frame is called. `??` for what is unknown.
std::string frame_name(const stack_trie::frame& f);
/// What is behind it: "@stuck|missing", the ranks that stand here, and those of the world that do
/// not.
std::string rank_label(const rank_set& here, const rank_set& world);

} // namespace troupe::diag
