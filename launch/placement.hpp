#pragma once

#include "launch/options.hpp"

#include <string>

/// Where the master of a job is, and who runs it: read off the command line.
namespace troupe::launch {

struct placement {
  enum class hosting {
    here,     ///< This launcher runs the master, or the job cannot start.
    if_able,  ///< Whoever gets the address runs it; the others dial.
    elsewhere ///< Somebody else runs it.
  };
  hosting host = hosting::here;
  ports::endpoint master;
  /// Where the workers' store must be; 0: anywhere. torchrun's --master-port is the store's. Ours
  /// is the master's, but for a job on one node, whose master nobody dials.
  std::uint16_t store_port = 0;
};

/// torchrun's rules: a standalone job has a master of its own on a port of its own. --rdzv-conf
/// is_host says it outright. At a static address node rank 0 runs it. At an endpoint whoever gets
/// it does, rank 0 or a launcher without a rank; if an actor-master is there already, nobody.
placement place_master(const launcher_options& o);

} // namespace troupe::launch
