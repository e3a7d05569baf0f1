#pragma once

#include "runtime/ports/cluster.hpp"
#include "tests/sim/world.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace troupe::sim {

struct machines_options {
  /// How often a node that the job gives up is replaced; its successors count together.
  std::uint32_t again = 0;
  duration begins_within = 2s;
};

/// A cluster that gives machines, as Kubernetes does for an ElasticJob: another one for each node
/// that the job gives up, under another name. It outlives masters, and each of them hears how many
/// nodes it gives. Lost nodes are the plan's, which starts them again.
class machines {
 public:
  /// `start` starts a launcher on a machine of that name, unless the job is over.
  machines(world& of, machines_options options, std::uint32_t nodes,
           std::function<void(const std::string&)> start);

  /// Another machine has its place, or none is given for it: its launcher is not started again.
  bool has_left(const std::string& node) const { return left_.count(node) != 0; }

  /// As the master sees it that runs in this life; `in_master` has something happen there.
  std::shared_ptr<ports::cluster> seen_by(std::function<void(std::function<void()>)> in_master);

 private:
  class view;

  void replace(const std::string& node);
  ports::cluster::supply supply() const;

  world& world_;
  const machines_options options_;
  const std::function<void(const std::string&)> start_;
  std::uint32_t nodes_; ///< so many there have been
  std::uint32_t wanted_;
  std::uint32_t given_up_ = 0;
  std::map<std::string, std::uint32_t> used_; ///< of a node's budget, by its predecessors
  std::set<std::string> left_;
  std::weak_ptr<view> newest_;
};

} // namespace troupe::sim
