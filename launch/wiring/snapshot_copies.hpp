#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/os/checkpoint/snapshot_watch.hpp"
#include "runtime/os/copies/replication_source.hpp"
#include "runtime/os/copies/replication_target.hpp"
#include "runtime/os/copies/snapshot_copier.hpp"
#include "runtime/ports/bulk_links.hpp"

#include <memory>
#include <vector>

namespace troupe::launch {

/// Copies of snapshots between the nodes of a job, on this node's bulk links.
class snapshot_copies {
 public:
  /// `memory`: of each local rank, for others' snapshots. The error says why this node can have no
  /// part in it.
  static result<std::unique_ptr<snapshot_copies>>
  open(const std::shared_ptr<ports::bulk_links>& bulk, const node_name& node,
       const std::vector<std::vector<int>>& memory, const log::sink& sink);

  /// The node's replication_host, which may outlive this: then it gives nothing any more.
  std::shared_ptr<ckpt::snapshot_copier>
  copier_of(const std::shared_ptr<ckpt::snapshot_watch>& memory) const;

 private:
  snapshot_copies() = default;

  const std::shared_ptr<ckpt::shared_rank_owners> owners_ =
      std::make_shared<ckpt::shared_rank_owners>();
  std::unique_ptr<ckpt::replication_target> target_;
  std::shared_ptr<ckpt::replication_source> source_;
};

} // namespace troupe::launch
