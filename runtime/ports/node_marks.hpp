#pragma once

#include "runtime/base/ids.hpp"

#include <string>

/// Where it is written down that a machine is broken, so that nothing else is scheduled there: a
/// taint or a cordon of the cluster's scheduler.
namespace troupe::ports {

/// Thread-safe; nothing blocks.
class node_marks {
 public:
  virtual ~node_marks() = default;

  /// `address`: as other nodes reach it. The same may be marked again.
  virtual void mark_faulty(const node_name& node, const std::string& address,
                           const std::string& reason) = 0;
};

/// Without a scheduler that could be told.
class no_node_marks final : public node_marks {
 public:
  void mark_faulty(const node_name&, const std::string&, const std::string&) override {}
};

} // namespace troupe::ports
