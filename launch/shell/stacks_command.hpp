#pragma once

#include "launch/options/options.hpp"
#include "launch/shell/tree_command.hpp"
#include "runtime/ports/transport.hpp"

#include <memory>

namespace troupe::launch {

/// `actor-shell stacks`: has the master gather what all ranks are doing, and says where it is
/// written and what is missing. Answers the exit code.
int show_stacks(const shell_options& o, const std::shared_ptr<ports::transport>& transport,
                const ports::endpoint& master, wishes& wants);

} // namespace troupe::launch
