#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "tests/sim/host.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::sim {

/// Pieces of snapshots at other nodes, as messages/copies.capnp has them come and go: a stripe is
/// whole when all have given to it, and broken when one goes before. Knows what is where, no bytes.
class copies {
 public:
  explicit copies(world& of) : world_(of) {}

  /// `launcher` gives a snapshot's pieces; `done` is called in its context when all of the group
  /// have given theirs, or one has gone.
  void give(const host_ptr& launcher, const ckpt::snapshot_to_copy& snapshot,
            std::function<void(result<void>)> done);
  /// Its links have gone, and if it did not crash only, what it held and gave.
  void launcher_ended(const std::string& node, bool memory_is_lost);
  void launcher_started(const std::string& node) { present_.insert(node); }

  /// Whether what is held of a snapshot, and its group's own snapshots, suffice to have it again.
  bool can_be_rebuilt(const ckpt::snapshot_to_copy& snapshot) const;

 private:
  struct gift {
    host_ptr launcher;
    ckpt::snapshot_to_copy snapshot;
    std::function<void(result<void>)> done;
  };
  struct group {
    std::uint32_t members = 0, parity = 0;
    std::map<std::string, gift> given; ///< by node
    bool whole = false;
    std::set<std::string> lost;
  };
  using key = std::tuple<generation, std::uint64_t, local_rank>;
  static key key_of(const ckpt::snapshot_here& snapshot) {
    return {snapshot.made_by, snapshot.step, snapshot.local};
  }
  static void refuse(group& g, const std::string& gone);

  world& world_;
  std::set<std::string> present_;
  std::map<key, group> groups_;
};

} // namespace troupe::sim
