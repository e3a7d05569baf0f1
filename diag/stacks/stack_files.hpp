#pragma once

#include "diag/stacks/merged_stacks.hpp"

#include <string>
#include <string_view>

/// What merged stacks are written as, for other programs. The picture is in flame_graph.hpp.
namespace troupe::diag {

/// `state;outermost;…;innermost 1`, one line for each different stack, as flamegraph.pl reads it
/// and xpu_timer's viewer writes it. How many ranks share a stack is in the label of each frame;
/// counted by them, the one rank that matters would be too narrow to be seen.
std::string folded(const stack_trie& trie, const rank_set& world);

/// Everything, for programs: docs/actor-stacks.md has the fields.
std::string to_json(const merged_stacks& stacks);

} // namespace troupe::diag
