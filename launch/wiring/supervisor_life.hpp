#pragma once

#include "launch/keeper/keeper_client.hpp"
#include "launch/wiring/launch_facts.hpp"

namespace troupe::launch {

/// One life of the node supervisor: its tree, the master's beside it if this launcher hosts it,
/// until this node's part in the job is over. Answers the launcher's exit code.
int live(const launch_facts& facts, keeper_client& keeper);

} // namespace troupe::launch
