#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "runtime/os/checkpoint/snapshot_watch.hpp"
#include "runtime/os/copies/shared_rank_owners.hpp"
#include "runtime/ports/storage.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace troupe::ckpt {

/// The real replication_host: hears from the memory of a node's training processes which snapshots
/// are to be held by others, and has them given to their targets, sealed.
///
/// A snapshot that is being given is read by a link's thread for seconds. So its slot is held, and
/// its memory stays mapped, until the source says that it has ended, even if this host is gone by
/// then.
class snapshot_copier final : public replication_host {
 public:
  /// Gives a snapshot's pieces to their targets: replication_source::give, or a refusal. Calls back
  /// once, from any thread.
  using giver = std::function<void(const snapshot_to_copy&, ports::bytes_view,
                                   std::function<void(result<void>)>)>;

  /// Without `give` copies are refused. `owners`: what the node's target compares with; null if it
  /// has none.
  explicit snapshot_copier(std::shared_ptr<snapshot_watch> memory, giver give = {},
                           std::shared_ptr<shared_rank_owners> owners = nullptr);
  ~snapshot_copier() override;

  void watch(std::function<void(const snapshot_to_copy&)> on_request) override;
  void copy(const snapshot_to_copy& snapshot, std::function<void(result<void>)> done) override;
  void finalize(const snapshot_to_copy& snapshot, const result<void>& how) override;
  void learn_owners(const messages::msg<messages::RankOwners>& owners) override;

 private:
  void tell(const slots& words, const snapshot_here& snapshot);
  void copy_now(const snapshot_to_copy& snapshot);
  void copied(const snapshot_to_copy& snapshot, const result<void>& how);

  const std::shared_ptr<snapshot_watch> memory_;
  const giver give_;
  const std::shared_ptr<shared_rank_owners> owners_;
  /// Whether this is still here, for sources that call back later.
  const std::shared_ptr<std::atomic<bool>> here_ = std::make_shared<std::atomic<bool>>(true);

  // The watch's thread's.
  std::function<void(const snapshot_to_copy&)> on_request_;
  std::set<snapshot_key> told_;
  /// Of what is being copied: its waiters, a replicator that crashed among them.
  std::map<snapshot_key, std::vector<std::function<void(result<void>)>>> copies_;
};

} // namespace troupe::ckpt
