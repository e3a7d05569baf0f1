#pragma once

#include "actors/node_supervisor/training_program.hpp"
#include "launch/worker/worker_environment.hpp"
#include "launch/worker/worker_output.hpp"
#include "runtime/base/log.hpp"

#include <memory>

namespace troupe::launch {

/// The training program as the agent sees it: command and environment of each worker, its files,
/// and what it left behind about a failure.
actors::training_program program_of(const worker_contract& contract,
                                    const std::shared_ptr<worker_output>& output,
                                    const std::shared_ptr<ports::process_host>& processes,
                                    const log::sink& log);

} // namespace troupe::launch
