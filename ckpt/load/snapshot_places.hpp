#pragma once

#include "ckpt/load/rank_view.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::ckpt {

/// Which rank can send which rank's part of a state.
///
/// A node keeps its memory when it gets another rank, so a rank may find the part of another one
/// there, and its own may be at a node that it has never run on. Whose part a snapshot is says the
/// snapshot alone; where it lies says this.
class snapshot_places {
 public:
  struct place {
    global_rank at = 0;
    std::uint64_t bytes = 0;
  };

  explicit snapshot_places(const std::vector<rank_view>& ranks);

  /// With the rank itself if it has it, else with the lowest that has it.
  std::optional<place> find(const state_id& id, global_rank of) const;

 private:
  std::map<std::pair<state_id, global_rank>, place> all_;
};

} // namespace troupe::ckpt
