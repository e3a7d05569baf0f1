#pragma once

#include "worker/process_arena.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Complete steps on storage, for a training process that goes on from one.
namespace troupe::ckpt {

/// Newest first. A place that is not there has none.
result<std::vector<std::uint64_t>> complete_steps(const std::string& place);

/// Reads a file of a complete step into a snapshot, whose slot is returned. Its size and checksum
/// are those that the manifest says, else it is an error and there is no snapshot.
result<std::size_t> read_back(process_arena& arena, const std::string& place, std::uint64_t step,
                              const std::string& file, slot_snapshot what);

} // namespace troupe::ckpt
