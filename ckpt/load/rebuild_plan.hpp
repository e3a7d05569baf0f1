#pragma once

#include "ckpt/load/rank_view.hpp"
#include "ckpt/load/snapshot_places.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

/// How a snapshot that was lost with its node is summed again from what other nodes hold of it:
/// which rank sends what to which ([ADR 16](docs/adr/0016-copies-are-parities.md)).
namespace troupe::ckpt {

/// Bytes `begin` to `end` of a snapshot, or of the memory of a parity, times a factor, are added at
/// `into`.
struct transfer {
  global_rank source = 0;
  /// Whose part the snapshot is that the source has; of a parity the source itself.
  global_rank of = 0;
  /// Where the source finds the parity in its node's memory; nothing: it is a snapshot.
  struct parity_at {
    std::uint64_t slot = 0, sequence = 0;
    friend bool operator==(const parity_at& a, const parity_at& b) {
      return a.slot == b.slot && a.sequence == b.sequence;
    }
  };
  std::optional<parity_at> parity;
  std::uint64_t begin = 0, end = 0;
  global_rank to = 0;
  std::uint64_t into = 0;
  std::uint8_t times = 1;
};

/// A rank's snapshot as it was.
struct rebuilt_snapshot {
  global_rank rank = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0; ///< to be compared with that of the sum
};

struct rebuild_plan {
  std::vector<rebuilt_snapshot> rebuilt;
  std::vector<transfer> transfers;
};

/// How rank `lost` gets its snapshot of this state, in terms of the snapshots and parities that are
/// there. Nothing if they do not suffice, or do not agree on what was lost.
std::optional<rebuild_plan> plan_rebuilding(global_rank lost, const state_id& of,
                                            const std::vector<rank_view>& ranks,
                                            const snapshot_places& places);

} // namespace troupe::ckpt
