#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "tests/sim/checkpoints.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace troupe::sim {

/// The twin of runtime/os/copies/snapshot_copier. Of which node runs which ranks it takes no
/// notice: no simulated node gives in another's place.
class sim_replication_host final : public ckpt::replication_host,
                                   public std::enable_shared_from_this<sim_replication_host> {
 public:
  sim_replication_host(checkpoints& of, host_ptr launcher)
      : all_(of), launcher_(std::move(launcher)) {}

  void watch(std::function<void(const ckpt::snapshot_to_copy&)> on_request) override;
  void copy(const ckpt::snapshot_to_copy& snapshot,
            std::function<void(result<void>)> done) override;
  void finalize(const ckpt::snapshot_to_copy& snapshot, const result<void>& how) override;
  void learn_owners(const messages::msg<messages::RankOwners>& owners) override;

  /// The training processes of this node have changed something in its memory.
  void look();
  /// Its process ends, with its threads.
  void end() { on_request_ = nullptr; }

 private:
  const std::string& node() const { return launcher_->name(); }
  void tell_requests();
  void copy_now(const ckpt::snapshot_to_copy& snapshot);
  void copied(const ckpt::snapshot_to_copy& snapshot, const result<void>& how);

  checkpoints& all_;
  const host_ptr launcher_;
  std::function<void(const ckpt::snapshot_to_copy&)> on_request_;
  std::set<ckpt::snapshot_key> told_;
  std::map<ckpt::snapshot_key, std::vector<std::function<void(result<void>)>>> copies_;
};

} // namespace troupe::sim
