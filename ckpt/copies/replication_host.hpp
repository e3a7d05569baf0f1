#pragma once

#include "ckpt/catalog/snapshot_here.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// The targets of a snapshot's pieces: nodes with one rank each (ckpt/erasure/stripes.hpp).
struct copy_group {
  struct member {
    global_rank rank = 0;
    std::string address; ///< "host:port"
  };
  std::vector<member> members;
  std::uint32_t parity = 0;
  std::uint32_t me = 0; ///< which member
};

/// A step whose snapshots all ranks know to be held by others.
struct held_step {
  generation made_by;
  std::uint64_t step = 0;
};

/// A snapshot of which pieces are to be held at other nodes. It stays as it is until that is
/// finalized, whatever becomes of its process.
struct snapshot_to_copy : snapshot_here {
  copy_group by;
  duration within{};
  std::optional<held_step> whole; ///< the targets' pieces of it are not dropped
};

/// How this node's snapshots come to be held at other nodes, and theirs here. Without copies the
/// loss of a node takes the newest state of its ranks along, and the job goes back to the disk.
///
/// The memory of the training processes says which snapshots are to be copied; links of this port's
/// own carry them. Thread-safe; nothing blocks; callbacks come from another thread.
class replication_host {
 public:
  virtual ~replication_host() = default;

  /// From now on each snapshot of which copies are requested is told, first those of which they are
  /// requested already: a replicator that comes after one that crashed hears of all again.
  virtual void watch(std::function<void(const snapshot_to_copy&)> on_request) = 0;

  /// Gives its pieces to their targets; all of them hold them when `done` is called, and those of
  /// the others that belong to them. Asked again about one that is under way it is given once.
  /// `done` is called in any case, a little after `snapshot.within` at the latest.
  virtual void copy(const snapshot_to_copy& snapshot, std::function<void(result<void>)> done) = 0;

  /// What became of it: its process may hear, and its memory is free for other snapshots.
  virtual void finalize(const snapshot_to_copy& snapshot, const result<void>& how) = 0;

  /// Which node runs which ranks: what others give here is compared with it. The same may be told
  /// twice.
  virtual void learn_owners(const messages::msg<messages::RankOwners>& owners) = 0;
};

/// For a node without memory for snapshots, or that takes no part in copies.
class no_replication_host final : public replication_host {
 public:
  void watch(std::function<void(const snapshot_to_copy&)>) override {}
  void copy(const snapshot_to_copy&, std::function<void(result<void>)> done) override {
    done(failure(errc::refused, "this node does not give copies to others"));
  }
  void finalize(const snapshot_to_copy&, const result<void>&) override {}
  void learn_owners(const messages::msg<messages::RankOwners>&) override {}
};

} // namespace troupe::ckpt
