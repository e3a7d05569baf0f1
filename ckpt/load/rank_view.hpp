#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "ckpt/erasure/stripes.hpp"
#include "runtime/base/ids.hpp"

#include <cstdint>
#include <tuple>
#include <vector>

/// What the ranks tell each other before a load: what each of them could go on from.
namespace troupe::ckpt {

/// A state that a job was in: of the save that made it, at this step. Of two the newer is what a
/// load takes, wherever it is ([ADR 20](docs/adr/0020-one-order-of-saves.md)). The step decides
/// only among states of versions that did not number saves.
struct state_id {
  save_id save;
  std::uint64_t step = 0;

  friend bool operator<(const state_id& a, const state_id& b) {
    return std::tie(a.save, a.step) < std::tie(b.save, b.step);
  }
  friend bool operator==(const state_id& a, const state_id& b) {
    return a.save == b.save && a.step == b.step;
  }
  friend bool operator!=(const state_id& a, const state_id& b) { return !(a == b); }
};

/// A whole snapshot in the memory of the rank's node.
struct snapshot_seen {
  state_id id;
  std::uint64_t bytes = 0;
  /// Whose part of the state it is. It may be another rank's than the one that sees it: nodes have
  /// got other ranks since it was saved.
  global_rank of = 0;
};

/// A whole snapshot in the memory of the rank's node, of a state of another world than this one.
struct foreign_snapshot {
  state_id id;
  std::uint64_t bytes = 0;
  global_rank of = 0; ///< in that world
  std::uint32_t shard = 0, shards = 0, world_size = 0;
};

/// A complete step in the rank's checkpoint directory.
struct step_on_disk {
  state_id id;
  std::uint32_t world_size = 0, shards = 0;
};

/// A parity in the memory of the rank's node (ckpt/erasure/stripes.hpp): a sum of pieces of other
/// ranks' snapshots.
struct parity_seen {
  state_id id;
  code by;
  std::uint32_t stripe = 0, row = 0;
  std::uint64_t slot = 0, sequence = 0; ///< of the node's memory, where it lies
  /// Of each member: its rank, how large its snapshot is (0: it gave nothing to the stripe), and
  /// that snapshot's checksum.
  std::vector<global_rank> ranks;
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint32_t> crc32;
};

struct rank_view {
  /// Whether the rank has memory of its own for a snapshot. One that has none looks into another's
  /// of its node, so nothing is fetched for it.
  bool holds = false;
  std::vector<snapshot_seen> memory;
  std::vector<foreign_snapshot> foreign;
  /// The newest of them first. `more_on_disk`: there are older ones that are not listed.
  std::vector<step_on_disk> disk;
  bool more_on_disk = false;
  std::vector<parity_seen> parities;
};

} // namespace troupe::ckpt
