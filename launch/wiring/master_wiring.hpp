#pragma once

#include "actors/topology.hpp"
#include "launch/options/options.hpp"
#include "runtime/link/options.hpp"

#include <optional>

/// What the master of a job is told. Two programs run a master, actor-master and the launcher of
/// node 0; both come here, so that a job does not depend on which of them it is.
namespace troupe::launch {

/// What the command lines of both programs say about the master.
struct master_settings {
  std::string job;
  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;
  bool may_have_others = false; ///< they reach it, also where nodes_max is 1
  /// Nothing: what the nodes say.
  std::optional<std::uint32_t> max_restarts;
  rendezvous_settings rendezvous;
  job_policy policy;
  node_check_options check;
  ports::endpoint listen;
  /// Workers of each node; actor-master is not told.
  std::optional<std::uint32_t> slots;
  /// What the job runs; actor-master learns it from the nodes.
  actors::command_identity command;
};

master_settings settings_of(const launcher_options& o, const ports::endpoint& listen);
master_settings settings_of(const master_program_options& o);

/// How often the links of the job show a sign of life, and how long a peer may be silent: the same
/// at the master and at each node, which know the same largest size of the job.
link::options link_timing_of(const launcher_options& o);
link::options link_timing_of(const master_program_options& o);

/// The error is what a file that is named has wrong, or that no world can ever be formed.
result<actors::master_options> master_options_of(const master_settings& s);

} // namespace troupe::launch
