#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace troupe::actors {

/// The merged stacks of all nodes, as they come in after they were asked for.
///
/// A node may be gone, cut off or slow to read; the picture does not wait for it longer than what
/// was asked for allows. One gathering at a time: a later one takes the place of one that is open.
class stacks_gather {
 public:
  /// What came, in the order of arrival.
  struct gathered {
    std::uint64_t dump = 0;
    std::vector<messages::msg<messages::MergedStacks>> of;
    std::size_t nodes = 0; ///< that were asked
  };

  /// `nodes` are asked now, and answer within so long.
  void begin(instant now, const messages::msg<messages::StacksWanted>& what,
             const std::vector<node_name>& nodes);
  /// Complete with this answer: what came. An answer to another question, a second one of a node
  /// and one of a node that was not asked change nothing.
  std::optional<gathered> take(const messages::msg<messages::MergedStacks>& m);
  /// Its time is over: what came until now.
  std::optional<gathered> tick(instant now);
  std::optional<instant> next_wakeup() const;

 private:
  gathered finish();

  std::uint64_t dump_ = 0;
  std::set<node_name> missing_;
  std::size_t nodes_ = 0;
  std::vector<messages::msg<messages::MergedStacks>> came_;
  std::optional<instant> until_;
};

} // namespace troupe::actors
