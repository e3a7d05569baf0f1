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

  struct supply {
    std::uint32_t wanted = 0; ///< as the cluster was told
    std::uint32_t nodes = 0;  ///< so many of them are there, or may still come
    std::string why_no_more;  ///< empty: all of them may come
    std::string budget;       ///< how often one is replaced, in words
  };
  /// It wants worlds of such sizes.
  struct sizes {
    std::uint32_t nodes_min = 0, nodes_max = 0;
    std::string plan; ///< the identity of what says so, if that may be told again; else empty
    /// From any thread: it is on record, or was refused, with the reason. Until then it is told
    /// again to each listener.
    std::function<void(bool accepted, const std::string& why)> done;
  };
  /// From a thread of the cluster's. What was told before, and is not done, is told at once.
  struct listener {
    std::function<void(const sizes&)> scale;
    std::function<void(const supply&)> supplied;
  };
  virtual void listen(listener by) = 0;

  /// It gives another machine for a node that it is told to replace.
  virtual bool replaces() const = 0;

  /// Written down where the scheduler sees it, as a taint or a cordon, so that nothing else is
  /// scheduled on that node's machine. The same may be marked again.
  virtual void mark_faulty(const node_name& node, const std::string& address,
                           const std::string& reason) = 0;
  /// The job does not hear the node any more, whatever the cluster believes: another one is wanted
  /// in its place.
  virtual void node_lost(const node_name& node, const std::string& address,
                         const std::string& reason) = 0;
  /// The job has given the node up for good, and its processes end by themselves: another machine
  /// is wanted in its place, as often as the cluster's own budget allows.
  virtual void replace(const node_name& node, const std::string& address, bool is_broken,
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
  void listen(listener) override {}
  bool replaces() const override { return false; }
  void mark_faulty(const node_name&, const std::string&, const std::string&) override {}
  void node_lost(const node_name&, const std::string&, const std::string&) override {}
  void replace(const node_name&, const std::string&, bool, const std::string&) override {}
  void want(std::uint32_t) override {}
  void end() override {}
};

} // namespace troupe::ports
