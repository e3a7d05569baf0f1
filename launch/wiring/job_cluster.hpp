#pragma once

#include "launch/options/cluster.hpp"
#include "launch/wiring/machine.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/cluster.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace troupe::launch {

/// The identity of the ElasticJob, as its operator has told this pod (JOB_UID); empty: there is
/// none.
std::string uid_of_job(const cluster_options& o, const machine_facts& machine);

/// The cluster that a job's master knows: Kubernetes (--mark-faulty, --elastic-job), or none.
/// `nodes`: MIN and MAX of --nnodes. The error names the option, and what this process lacks.
result<std::shared_ptr<ports::cluster>>
cluster_of(const cluster_options& o, const machine_facts& machine, const std::string& job,
           std::pair<std::uint32_t, std::uint32_t> nodes, const log::sink& log);

} // namespace troupe::launch
