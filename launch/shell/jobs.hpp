#pragma once

#include "runtime/base/time.hpp"
#include "runtime/ports/transport.hpp"
#include "runtime/sup/report.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

/// `actor-shell ps`: the jobs of this user whose master is on this machine.
namespace troupe::launch {

struct job_seen {
  std::string job;
  ports::endpoint master;
  duration uptime{}; ///< of the master
  std::string doing; ///< in the planner's words; or why that is not known
};

/// What the master's tree says about its job.
job_seen job_in(const std::string& job, const ports::endpoint& master,
                const sup::node_report& tree);

/// One line for each, in at most so many columns (0: as many as it takes), below a head; a line of
/// its own if there is none.
std::string jobs_text(std::vector<job_seen> jobs, std::size_t columns);

/// {"jobs": [{"job", "master", "uptime_ms", "doing"}, …]}
std::string jobs_json(std::vector<job_seen> jobs);

/// Asks every place where a master may be. Answers the exit code.
int show_jobs(const std::vector<std::shared_ptr<ports::transport>>& transports,
              const std::vector<ports::endpoint>& possible, bool json);

} // namespace troupe::launch
