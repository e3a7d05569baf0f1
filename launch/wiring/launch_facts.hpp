#pragma once

#include "launch/options/options.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/run_directory.hpp"
#include "launch/worker/checkpoint_memory.hpp"
#include "launch/worker/progress_memory.hpp"
#include "launch/worker/shown_progress.hpp"
#include "launch/worker/worker_environment.hpp"
#include "launch/worker/worker_socket.hpp"

#include <cstdint>

namespace troupe::launch {

/// Found once, by the keeper, before there is any other process; the same for all of them.
struct launch_facts {
  launcher_options options;
  machine_facts machine;
  worker_contract contract;
  run_directory directory;
  node_name node;
  /// For incarnation and jitter: a successor is the same node.
  std::uint64_t seed = 0;
  /// The soft limit of open files as the launcher found it, for workers: programs that use select()
  /// break when more than 1,024 files may be open.
  std::uint64_t open_files = 0;
  shown_progress progress;
  checkpoint_memory memory;
  progress_memory pages;
  worker_socket channel;
  instant started;
};

inline os::log_origin origin_of(const launch_facts& facts) {
  return {facts.options.rdzv_id, facts.node};
}

} // namespace troupe::launch
