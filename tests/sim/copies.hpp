#pragma once

#include "tests/sim/copy_link.hpp"
#include "tests/sim/copy_source.hpp"
#include "tests/sim/copy_target.hpp"
#include "tests/sim/piece_memory.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::sim {

/// Pieces of snapshots at other nodes: what each node holds of others', what gives them, and the
/// links in between.
class copies {
 public:
  explicit copies(world& of) : world_(of) {}

  /// A node supervisor has begun; what is whole of what it finds stays.
  void launcher_started(const host_ptr& launcher);
  /// Its links have gone, and if it did not crash only, what it held.
  void launcher_ended(const host_ptr& launcher, ending_kind how);

  /// A node supervisor has heard which node runs which ranks.
  void learn_owners(const std::string& node, const messages::msg<messages::RankOwners>& m);

  /// What gives the snapshots of a local rank. Precondition: a node supervisor is there.
  copy_source& source_of(const host_ptr& launcher, local_rank local);
  /// What a node holds of others'.
  const sim_piece_memory& memory_of(const std::string& node) { return memories_[node]; }

 private:
  struct supervisor {
    std::shared_ptr<copy_target> target;
    std::map<local_rank, std::shared_ptr<copy_source>> sources;
  };

  std::shared_ptr<copy_link> dial(const std::string& address, copy_link::ear from);

  world& world_;
  std::map<std::string, sim_piece_memory> memories_; ///< by node
  std::map<std::string, supervisor> present_;        ///< by node
  std::vector<std::shared_ptr<copy_link>> links_;
};

} // namespace troupe::sim
