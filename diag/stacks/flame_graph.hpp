#pragma once

#include "diag/stacks/merged_stacks.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// Merged stacks as one picture that a browser shows.
///
/// Among thousands of equal stacks the one that matters is a line that no eye finds. So the width
/// of a frame says how many *different* stacks come through it, not how many threads; of siblings
/// the rarest stands left; and the fewer ranks stand somewhere, the redder it is.
namespace troupe::diag {

struct flame_graph {
  std::string title;
  std::uint32_t width = 1600; ///< pixels
};

/// One SVG that needs nothing beside itself. Without scripts it is a plain picture; with them a
/// click zooms, and frames can be searched. `trie` is one of the two in `stacks`.
std::string svg_of(const stack_trie& trie, const merged_stacks& stacks, const flame_graph& how);

/// The fill of a frame: pale blue or yellow, as its name's hash has it, where all ranks are.
std::string frame_colour(std::string_view name, std::size_t ranks, std::size_t of);

} // namespace troupe::diag
