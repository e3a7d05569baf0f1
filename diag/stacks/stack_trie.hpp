#pragma once

#include "diag/stacks/limits.hpp"
#include "diag/stacks/rank_set.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// The stacks of all threads of all ranks as one tree.
///
/// Four thousand ranks with forty threads each have as many stacks as a book has lines, and nearly
/// all are equal; the one that is not tells why training stands still. Merged by their frames from
/// the outermost on, what all have in common is one branch, and each exception one of its own.
namespace troupe::diag {

/// Numbers by number, in one piece of memory: the merge looks up a child for each frame there is.
class number_table {
 public:
  static constexpr std::uint32_t none = 0xffff'ffff;
  std::uint32_t find(std::uint64_t key) const;
  /// Precondition: it is not there yet.
  void add(std::uint64_t key, std::uint32_t value);

 private:
  struct entry {
    std::uint64_t key = 0;
    std::uint32_t value = none;
  };
  std::size_t place_of(std::uint64_t key) const;
  void grow();
  std::vector<entry> entries_ = std::vector<entry>(64);
  unsigned shift_ = 58; ///< 64 without the bits of a place in `entries_`
  std::size_t used_ = 0;
};

/// The smallest few of the lines that were seen, so that any order of merging gives the same.
struct line_set {
  static constexpr std::size_t kept = 4;
  std::array<std::uint32_t, kept> lines{}; ///< ascending; 0: none
  bool more = false;

  void add(std::uint32_t line);
  void add(const line_set& others);
  friend bool operator==(const line_set& a, const line_set& b) {
    return a.lines == b.lines && a.more == b.more;
  }
};

/// What the bounds of a trie left out.
struct left_out {
  std::uint64_t deep = 0;  ///< stacks of which frames in the middle are not shown
  std::uint64_t full = 0;  ///< stacks that end early, since the trie was full
  std::uint64_t names = 0; ///< names that are shown as unknown

  void add(const left_out& others) {
    deep += others.deep;
    full += others.full;
    names += others.names;
  }
  friend bool operator==(const left_out& a, const left_out& b) {
    return a.deep == b.deep && a.full == b.full && a.names == b.names;
  }
};

class stack_trie {
 public:
  using frame_id = std::uint32_t;
  using node_id = std::uint32_t;
  static constexpr node_id root = 0;
  static constexpr frame_id unknown_frame = 0;
  /// What stands where frames of a very deep stack are left out.
  static constexpr std::string_view gap = "(frames left out)";

  /// One frame of a stack.
  struct step {
    frame_id frame = 0;
    std::uint32_t line = 0; ///< 0: unknown
  };
  struct node {
    node_id parent = root;
    frame_id frame = 0;
    std::uint64_t threads = 0; ///< whose stacks come through here,
    std::uint64_t ended = 0;   ///< and those that end here
    rank_set ranks;
    line_set lines;
  };
  struct frame {
    std::string_view function, source; ///< empty: unknown
  };

  stack_trie() : stack_trie(limits::trie_nodes_max, limits::trie_names_bytes_max) {}
  stack_trie(std::size_t nodes_max, std::size_t names_bytes_max);
  stack_trie(stack_trie&&) = default;
  stack_trie& operator=(stack_trie&&) = default;

  /// The number of a frame here. Frames are the same if function and source are.
  frame_id frame_of(std::string_view function, std::string_view source);
  /// One thread of a rank; outermost frame first.
  void add(std::uint32_t rank, const std::vector<step>& stack);
  /// Adds all that another has. As long as nothing is left out it makes no difference which of two
  /// is merged into which, or in what order many are.
  void merge(const stack_trie& other);
  /// A child by its frame, made if it is new; `root` if there is no room. For readers of tries.
  node_id child(node_id parent, frame_id what);
  /// Adds to a node; answers false if there is no room for that many runs of ranks.
  bool add_to(node_id at, const rank_set& ranks, const line_set& lines, std::uint64_t threads,
              std::uint64_t ended);
  void leave_out(const left_out& more) { left_out_.add(more); }

  /// The root is node 0 and no frame; a parent comes before its children.
  const std::vector<node>& nodes() const { return nodes_; }
  frame frame_at(frame_id id) const;
  std::size_t frames() const { return frames_.size(); }
  const left_out& was_left_out() const { return left_out_; }

 private:
  using name_id = std::uint32_t;
  name_id intern(std::string_view name);
  void add_whole(std::uint32_t rank, const step* from, std::size_t count);
  bool has_room_for_runs(std::size_t more) const { return runs_ + more <= limits::trie_runs_max; }

  std::size_t nodes_max_, names_bytes_max_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, name_id> by_name_;
  std::size_t names_bytes_ = 0;
  std::vector<std::pair<name_id, name_id>> frames_;
  number_table by_frame_, by_step_;
  std::vector<node> nodes_;
  std::size_t runs_ = 0;
  left_out left_out_;
};

} // namespace troupe::diag
