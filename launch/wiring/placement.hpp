#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/log.hpp"

/// Where the master of a job is, and which launcher runs it: read off the command line.
namespace troupe::launch {

struct placement {
  enum class hosting {
    here,     ///< This launcher runs the master, or the job cannot start.
    if_able,  ///< The first launcher at the address runs it; the others dial.
    elsewhere ///< Another process runs it.
  };
  hosting host = hosting::here;
  ports::endpoint master;
  /// Where the workers' store must be; 0: anywhere. torchrun's --master-port is the store's. Ours
  /// is the master's, but for a job on one node, whose master is not dialled.
  std::uint16_t store_port = 0;
};

/// torchrun's rules: a standalone job has a master of its own on a port of its own. --rdzv-conf
/// is_host says it outright. At a static address node rank 0 runs it. At an endpoint
/// the first of rank 0 and the launchers without a rank does, unless an actor-master is there.
placement place_master(const launcher_options& o);

/// Whether this node runs the master, and what follows if that machine is lost. Launchers that
/// share the endpoint's address decide it by which comes first.
log::event told_at_start(const ports::endpoint& master, bool runs_here, duration away_timeout);

/// How another node joins a job whose master runs here; a warning if only processes of this machine
/// can.
log::event told_to_others(const launcher_options& o, const ports::endpoint& master,
                          const std::string& host);

/// For the start of a job of several nodes: these, and which of this node's options have no effect
/// where it does not run the master.
std::vector<log::event> lines_at_start(const launcher_options& o, const ports::endpoint& master,
                                       bool runs_here, const std::string& host);

} // namespace troupe::launch
