#pragma once

#include "launch/options/rendezvous.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::launch {

/// What the variables around us say about this job's nodes.
struct scheduler_environment {
  /// Where the master is, or will be.
  std::optional<ports::endpoint> master;
  /// It is this job's own and listens already, or another process starts it: what
  /// TROUPE_MASTER_ADDR and DLROVER_MASTER_ADDR name. Otherwise it is the first of the job's nodes.
  bool named = false;
  /// This process is below a worker of some launcher, torchrun's or ours, whose job these variables
  /// may be about: a script that starts a launcher of its own hands them on.
  bool in_worker = false;
  std::optional<std::uint32_t> node_rank;
  std::optional<std::uint32_t> nodes;
  /// The variable that said it.
  std::string from;
  /// In a pod of one of Kubernetes' indexed Jobs, whose pods are called <job>-<index>: "<job>-",
  /// and this pod's index.
  std::string siblings;
  std::optional<std::uint32_t> index;
};

/// This node's rank if the job meets at the first of its siblings: their indices are the ranks
/// then. With any other address they say nothing: a job may be made of several indexed Jobs, as in
/// a JobSet, whose indices all begin with 0.
std::optional<std::uint32_t> rank_among_siblings(const scheduler_environment& s,
                                                 const std::string& master_host);

/// The first of these that says anything: TROUPE_MASTER_ADDR (and _PORT), DLROVER_MASTER_ADDR,
/// PET_MASTER_ADDR (which the options read by themselves), Volcano's VC_MASTER_HOSTS and
/// VC_WORKER_HOSTS, Slurm's variables. JOB_COMPLETION_INDEX is read beside any of them. `host` is
/// what this machine calls itself. `invalid` with one line that names the variable.
result<scheduler_environment>
find_scheduler_environment(const std::map<std::string, std::string>& environment,
                           const std::string& host);

} // namespace troupe::launch
