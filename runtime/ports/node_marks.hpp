#pragma once

#include "runtime/base/ids.hpp"

#include <string>

/// Where it is written down that a machine is broken, so that nothing else is scheduled there: a
/// taint or a cordon of the cluster's scheduler.
namespace troupe::ports {

/// Thread-safe; only `end` waits.
class node_marks {
 public:
  virtual ~node_marks() = default;

  /// `address`: as other nodes reach it. The same may be marked again.
  virtual void mark_faulty(const node_name& node, const std::string& address,
                           const std::string& reason) = 0;
  /// The job is over: waits for marks that are under way, for a bounded time, and tells which are
  /// left. Nothing is marked any more.
  virtual void end() = 0;
};

/// Without a scheduler that could be told.
class no_node_marks final : public node_marks {
 public:
  void mark_faulty(const node_name&, const std::string&, const std::string&) override {}
  void end() override {}
};

} // namespace troupe::ports
