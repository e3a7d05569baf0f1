#pragma once

#include "diag/stacks/merged_stacks.hpp"
#include "messages/stacks.capnp.h"
#include "runtime/base/result.hpp"

/// Merged stacks as a message: how they go up the tree, from a node to its master.
namespace troupe::diag {

/// Sets all but `node` and `dump`. If it is too much for a message the deepest frames are left out,
/// and counted as the trie counts them.
void write_merged(const merged_stacks& stacks, messages::MergedStacks::Builder out);

/// Any message gives stacks or one line of what is wrong with it.
result<merged_stacks> read_merged(messages::MergedStacks::Reader in);

} // namespace troupe::diag
