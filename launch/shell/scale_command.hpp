#pragma once

#include "launch/options/options.hpp"
#include "launch/shell/tree_command.hpp"
#include "runtime/ports/transport.hpp"

#include <memory>

namespace troupe::launch {

/// `actor-shell scale MIN:MAX`: tells the master how many nodes the job's worlds may have from now
/// on, and prints what follows. Answers the exit code.
int scale_job(const shell_options& o, const std::shared_ptr<ports::transport>& transport,
              const ports::endpoint& master, wishes& wants);

} // namespace troupe::launch
