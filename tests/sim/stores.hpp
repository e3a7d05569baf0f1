#pragma once

#include "runtime/ports/store.hpp"
#include "tests/sim/host.hpp"

#include <memory>

namespace troupe::sim {

/// The workers' stores of a simulation: ports, and whether they are open. Trainers find each other
/// without them.
class stores {
 public:
  explicit stores(world& of) : world_(of) {}

  /// The stores of one launcher; they end with it.
  std::shared_ptr<ports::store_host> host_of(const host_ptr& launcher);

 private:
  friend class sim_store_host;

  world& world_;
  std::uint16_t last_port_ = 40'000;
};

} // namespace troupe::sim
