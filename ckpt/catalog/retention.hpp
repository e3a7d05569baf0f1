#pragma once

#include <cstdint>
#include <vector>

namespace troupe::ckpt {

/// Which complete steps are kept: those that any rule keeps. With neither rule, all.
struct retention {
  std::uint64_t keep_latest = 0; ///< the newest n, counting the newest; 0: this rule keeps none
  std::uint64_t keep_every = 0;  ///< multiples of k; 0: this rule keeps none
};

enum class step_state : std::uint8_t {
  writing,    ///< begun by this process, and neither complete nor given up
  incomplete, ///< begun by some process, and without a manifest
  complete,
  damaged, ///< has a manifest, and is not what that says: a person should look at it
};

const char* to_string(step_state s);

struct step_seen {
  std::uint64_t step = 0;
  step_state state = step_state::incomplete;
  std::uint64_t sequence = 0; ///< of a complete one: higher is newer
};

/// The steps to remove, in the order they were seen. Never the newest complete one, nor one that is
/// being written, nor a damaged one, which a person should see; an abandoned one goes as soon as a
/// later step is complete.
std::vector<std::uint64_t> removable(const std::vector<step_seen>& steps, retention keep);

} // namespace troupe::ckpt
