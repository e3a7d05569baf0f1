#pragma once

#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Checkpoints of other tools at a place: DLRover's, Megatron's and DeepSpeed's have no manifest,
/// only a tracker that names the newest of them.
namespace troupe::ckpt {

struct foreign_step {
  std::string tracker; ///< that names it
  std::uint64_t step = 0;
  std::string directory; ///< which is there, and no step of ours
};

/// What a tracker names, if that is there and no step of ours. Nothing for a tracker that is not
/// there or whose step is gone or ours.
result<std::optional<foreign_step>> foreign_step_of(ports::storage& storage,
                                                    const std::string& tracker);

/// What each tracker names, ours or not; without a directory where nothing is there.
result<std::vector<foreign_step>> tracked_steps(ports::storage& storage);

/// The same for every tracker that is known, the latest step first.
result<std::vector<foreign_step>> foreign_steps(ports::storage& storage);

} // namespace troupe::ckpt
