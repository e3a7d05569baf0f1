#pragma once

#include "probe/probe_host.hpp"
#include "tests/sim/host.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace troupe::sim {

/// What the nodes of a simulation find out about themselves.
class probes {
 public:
  explicit probes(world& of) : world_(of) {}

  duration takes = 100ms;
  std::set<std::string> broken;       ///< nodes with a device that fails
  std::set<std::string> stuck;        ///< whose drivers never answer
  std::map<std::string, double> slow; ///< so many times slower than the others
  /// The library for collectives of the one device that each node has. Empty: none has any.
  std::string collectives;

  std::shared_ptr<probe::probe_host> host_of(const host_ptr& launcher);

 private:
  friend class sim_probe_host;

  world& world_;
};

} // namespace troupe::sim
