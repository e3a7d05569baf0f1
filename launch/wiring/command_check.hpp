#pragma once

#include "launch/options/options.hpp"
#include "launch/worker/worker_environment.hpp"
#include "runtime/base/result.hpp"

#include <optional>
#include <string>

/// What a launcher finds out about its workers before it starts any.
namespace troupe::launch {

/// The workers' contract on this machine, but for the directory of their files.
result<worker_contract> contract_on(const launcher_options& o, const machine_facts& machine);

/// What would fail on this node at every restart, found before other nodes wait for this one:
/// a script that is not there, an interpreter that cannot be executed.
std::optional<std::string> command_validation_error(const launcher_options& o,
                                                    const worker_contract& contract);

} // namespace troupe::launch
