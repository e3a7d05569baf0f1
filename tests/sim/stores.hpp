#pragma once

#include "runtime/ports/store.hpp"
#include "tests/sim/host.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::sim {

/// The workers' stores of a simulation: ports, and whether they are open. Trainers find each other
/// without them.
class stores {
 public:
  explicit stores(world& of) : world_(of) {}

  /// The stores of one launcher; they end with it, but not with a node supervisor that crashes.
  std::shared_ptr<ports::store_host> host_of(const host_ptr& launcher);
  void launcher_ended(const host_ptr& launcher, ending_kind how);

 private:
  friend class sim_store_host;

  void close_left(const std::string& node);

  world& world_;
  std::map<std::string, std::uint16_t> left_; ///< by a crashed supervisor, by node
  std::uint16_t last_port_ = 40'000;
};

} // namespace troupe::sim
