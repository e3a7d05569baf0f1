#pragma once

#include "actors/node_supervisor/training_program.hpp"

#include <string>

namespace troupe::launch {

/// What ModelArts leaves for start scripts: `RANK_AFTER_ACC`, the node's rank, and `MASTER_INDEX`,
/// which rank the node with rank 0 would have had without the network; each a number by itself. A
/// script that reads one never finds half of it. Empty `directory`: nothing is to be written.
result<void> write_rank_files(const std::string& directory, const actors::assignment& place);

} // namespace troupe::launch
