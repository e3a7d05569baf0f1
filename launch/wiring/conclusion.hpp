#pragma once

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "launch/wiring/failure_summary.hpp"

#include <map>
#include <string>

namespace troupe::launch {

/// What is left to do when a job has failed: the text for people, and the error file for the
/// process that started this launcher (TORCHELASTIC_ERROR_FILE in its own environment), if the root
/// cause wrote one. `checkpoint`: the last complete one in words, or empty. Answers the text, with
/// a line before it if that file could not be written.
std::string conclude_failure(const std::string& what, const node_name& node,
                             const actors::node_outcome& outcome, const std::string& checkpoint,
                             const std::map<std::string, std::string>& environment,
                             ports::process_host& files);

} // namespace troupe::launch
