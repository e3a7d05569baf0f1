#pragma once

#include "runtime/base/ids.hpp"

#include <cstdint>
#include <functional>
#include <string>

/// The cluster below a job: where its nodes come from, and where they are replaced.
namespace troupe::ports {

/// Thread-safe; only `end` waits. Nodes are known by their addresses, as other nodes reach them.
class cluster {
 public:
  virtual ~cluster() = default;

  /// From a thread of the cluster's: it wants worlds of such sizes. What was wanted before is told
  /// at once.
  using on_scale = std::function<void(std::uint32_t nodes_min, std::uint32_t nodes_max)>;
  virtual void listen(on_scale scale) = 0;

  /// Written down where the scheduler sees it, as a taint or a cordon, so that nothing else is
  /// scheduled on that node's machine. The same may be marked again.
  virtual void mark_faulty(const node_name& node, const std::string& address,
                           const std::string& reason) = 0;
  /// The job does not hear the node any more, whatever the cluster believes: another one is wanted
  /// in its place.
  virtual void node_lost(const node_name& node, const std::string& address,
                         const std::string& reason) = 0;
  /// So many nodes are wanted at most, from now on.
  virtual void want(std::uint32_t nodes) = 0;
  /// The job is over: waits for what is under way, for a bounded time, and tells what is left.
  /// Nothing is asked of the cluster any more.
  virtual void end() = 0;
};

/// Hosts that are there or not: nodes come by themselves.
class no_cluster final : public cluster {
 public:
  void listen(on_scale) override {}
  void mark_faulty(const node_name&, const std::string&, const std::string&) override {}
  void node_lost(const node_name&, const std::string&, const std::string&) override {}
  void want(std::uint32_t) override {}
  void end() override {}
};

} // namespace troupe::ports
