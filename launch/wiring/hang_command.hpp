#pragma once

#include "actors/master/diagnosis/diagnosis.hpp"
#include "runtime/base/log.hpp"

#include <string>
#include <vector>

namespace troupe::launch {

/// What `--hang-command` finds in its environment, beside this program's own.
std::vector<std::string> variables_of(const actors::diagnosis::finding& f);

/// Has sh run the command for each finding, one after the other, on a thread of its own; one that
/// takes too long is killed. How it ended is told where that is not 0.
actors::diagnosis::hook hang_command(const std::string& command, const log::sink& sink);

} // namespace troupe::launch
