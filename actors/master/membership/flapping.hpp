#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <map>

namespace troupe::actors {

/// Nodes that are lost again and again. Each time they come and go the whole job stops and forms
/// anew, so after a few losses within a short time a node has to wait before it may join, each time
/// twice as long; a quiet minute halves what is held against it. As BGP does with flapping routes
/// (RFC 2439), with a count in place of its penalty.
class flapping {
 public:
  /// The node was lost, though it may join again.
  void lost(instant now, const node_name& node);

  /// How long it still has to wait.
  duration must_wait(instant now, const node_name& node) const;

 private:
  /// The count alone, and no list of losses: it has to be kept for thousands of names.
  struct record {
    unsigned losses = 0; ///< as of `last`
    instant last{};
  };
  /// Halved by the quiet minutes since the last loss.
  static unsigned counted(const record& r, instant now);
  void forget(instant now);

  /// Bounded by limits::nodes_max.
  std::map<node_name, record> nodes_;
};

} // namespace troupe::actors
