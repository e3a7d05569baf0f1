#pragma once

#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe::actors {

/// The merged stacks of all nodes, as they come in after they were asked for.
///
/// A node may be gone, cut off or slow to read; the picture does not wait for it longer than what
/// was asked for allows. One gathering at a time: a later one takes the place of one that is open.
class stacks_gather {
 public:
  /// What came, in the order of arrival; and which parts of the world did not, within how long.
  struct gathered {
    std::uint64_t dump = 0;
    std::vector<messages::msg<messages::MergedStacks>> of;
    std::vector<diagnosis_core::part> absent;
    duration within{};
  };

  /// These parts of the world are asked now, and answer within so long. Answers the dump whose
  /// place this one takes.
  std::optional<std::uint64_t> begin(instant now, const messages::msg<messages::StacksWanted>& what,
                                     const std::vector<diagnosis_core::part>& parts);
  /// Complete with this answer: what came. An answer to another question, a second one of a node
  /// and one of a node that was not asked change nothing.
  std::optional<gathered> take(const messages::msg<messages::MergedStacks>& m);
  /// Its time is over: what came until now.
  std::optional<gathered> tick(instant now);
  std::optional<instant> next_wakeup() const;
  /// The one that is open.
  std::optional<std::uint64_t> dump() const;

 private:
  gathered finish();

  std::uint64_t dump_ = 0;
  duration within_{};
  std::map<node_name, diagnosis_core::part> missing_;
  std::vector<messages::msg<messages::MergedStacks>> came_;
  std::optional<instant> until_;
};

} // namespace troupe::actors
