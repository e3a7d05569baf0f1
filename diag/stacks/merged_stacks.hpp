#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "diag/stacks/stack_trie.hpp"

#include <cstdint>
#include <map>
#include <string>

/// What a whole job was doing at one moment: the stacks of all ranks that answered, and what is
/// missing, so that a rank without stacks is not taken for one that does nothing.
///
/// A node merges its ranks, the master its nodes, `actor-stacks` files: all by the same two calls.
namespace troupe::diag {

struct merged_stacks {
  std::uint32_t world_size = 0; ///< the largest that was said
  rank_set ranks;               ///< of which there is anything
  /// The children of a root are states: function "State" or the role of a helping process, source
  /// "S (sleeping)".
  stack_trie native, python;
  /// What could not be read, and of which ranks; beyond the bound in `missing_more`.
  std::map<std::string, rank_set> missing;
  rank_set missing_more;

  void add(const process_stacks& process);
  void merge(const merged_stacks& other);
  void add_missing(const std::string& what, const rank_set& of);
  /// Of the world: ranks of which there is nothing.
  rank_set absent() const { return ranks.missing_of(rank_set::below(world_size)); }
};

/// "S (sleeping)", as /proc has it. A letter that Linux does not have is shown as '?'.
std::string state_name(char state);

/// A line for people, as long as it may be.
std::string missing_line(std::string text);

} // namespace troupe::diag
