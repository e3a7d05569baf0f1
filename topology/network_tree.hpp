#pragma once

#include "runtime/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which nodes are how near to each other.
namespace troupe::topology {

/// Where a node is plugged in.
struct place {
  std::string node;
  /// The switches above it, from the top of the network down to the one that it is plugged into. A
  /// node without any hangs at the top itself.
  std::vector<std::string> switches;
  /// What the node is called as well: its addresses, where a file knows both.
  std::vector<std::string> also = {};
};

/// Whether a tree may have it: names of 1 to `limits::name_max` characters without control
/// characters, and at most `limits::switches_above_max` switches.
result<void> check(const place& one);

/// The nodes of a cluster as leaves of a tree of switches.
///
/// Two machines in one rack talk through one switch; two in different halls through the links that
/// all others use as well. A job whose ranks were numbered without regard for that sends each step
/// of each ring over those links. So every source of topology becomes this one tree, whatever its
/// levels were called, and all that is asked of it is whether two nodes share the switch of a
/// level.
///
/// Level 1 is below the top, `levels()` is the deepest. The group of a node at a level is the part
/// of the tree that hangs from its switch of that level. A switch is known by its name and by those
/// above it: switches of different rooms may have the same name. A node that has no switch so deep
/// is a group of its own there. Not changed once it is made.
class network_tree {
 public:
  /// Refuses more than `limits::nodes_max` nodes, what `check` refuses, and a name that two nodes
  /// have.
  static result<network_tree> of(std::vector<place> places);

  std::size_t size() const { return places_.size(); }
  std::size_t levels() const { return groups_.size(); }

  /// By its number, in the order of `places`.
  const place& at(std::size_t node) const { return places_[node]; }
  /// By its name, or by what it is called as well.
  std::optional<std::size_t> find(std::string_view node) const;

  /// Nodes with the same number share the switch of that level. 1 ≤ level ≤ `levels()`.
  std::uint32_t group(std::size_t level, std::size_t node) const {
    return groups_[level - 1][node];
  }

 private:
  /// Of a node: its first name, or one of those that it has as well, from 1 on.
  struct name_of {
    std::uint32_t node = 0, which = 0;
  };

  network_tree() = default;
  const std::string& text_of(name_of one) const;
  result<void> sort_names();

  std::vector<place> places_;
  std::vector<name_of> by_name_; ///< sorted by the names
  std::vector<std::vector<std::uint32_t>> groups_;
};

} // namespace troupe::topology
