#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"

namespace troupe::launch {

/// Runs the operator's tree until it leads no longer, has given up, or is sent SIGTERM or the like.
/// The error says why it ended, or could not begin; none: it was asked to.
result<void> run_operator(const operator_program_options& o, const machine_facts& machine,
                          const log::sink& log);

/// Waits for the end of `awaited_job`. The error says why it has not succeeded.
result<void> run_job_wait(const operator_program_options& o, const machine_facts& machine,
                          const log::sink& log);

} // namespace troupe::launch
