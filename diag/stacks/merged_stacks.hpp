#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "diag/stacks/stack_trie.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

/// What a whole job was doing at one moment: the stacks of all ranks that answered, and what is
/// missing, so that a rank without stacks is not taken for one that does nothing.
///
/// A node merges its ranks, the master its nodes, `actor-stacks` files: all by the same two calls.
namespace troupe::diag {

struct merged_stacks {
  std::uint32_t world_size = 0; ///< the largest that was said
  rank_set ranks;               ///< of which there is anything
  /// The state of a thread is a stack of one frame beside its frames (see state_frame), as
  /// xpu_timer's viewer has it: the ranks of a frame are all that have it, running or asleep. The
  /// frames of a helping process stand above its role.
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
/// The frame that stands for the state of a thread: "State@S (sleeping)", of a helping process
/// "State of data loader worker 7@D (disk sleep)".
stack_trie::frame_id state_frame(stack_trie& trie, std::string_view role, char state);
bool is_state(const stack_trie::frame& f);
/// "data loader worker 7@child process".
stack_trie::frame_id role_frame(stack_trie& trie, std::string_view role);
/// The helping process of whose thread this is the state; empty: the training process.
std::string_view role_of_state(const stack_trie::frame& f);

/// A line for people, as long as it may be.
std::string missing_line(std::string text);

} // namespace troupe::diag
