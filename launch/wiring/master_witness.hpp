#pragma once

#include "actors/topology.hpp"
#include "launch/options/options.hpp"
#include "runtime/link/options.hpp"
#include "runtime/os/bulk/bulk_exchange.hpp"
#include "runtime/os/io_thread.hpp"

#include <functional>
#include <memory>

namespace troupe::launch {

/// What makes a master that stands alone the third party of two nodes that fail with each other:
/// its own place where bulk links come in, on a thread of its own.
///
/// A master inside a launcher has none. It sees what its own machine sees: where that is cut off,
/// it would blame the node that works.
///
/// It outlives the engine of the actors that it is given to: they hold links whose ends are on its
/// thread, and let go of them when the engine clears them away, which may be after their tree
/// ended.
class master_witness {
 public:
  /// Nothing where there is nothing to witness: no check, one node, or all nodes on this machine.
  /// If the place can not be had, a line says so, and checks do without. `timing` is asked for each
  /// link that begins, on that thread.
  static std::unique_ptr<master_witness> open(const master_program_options& o,
                                              const log::sink& sink,
                                              std::function<link::options()> timing);

  void take_part(actors::master_options& options, actors::master_world& world) const;

 private:
  master_witness() = default;

  // In this order: links end before the thread does.
  os::io_thread io_{"troupe-bulk"};
  std::shared_ptr<os::bulk_exchange> links_;
};

} // namespace troupe::launch
