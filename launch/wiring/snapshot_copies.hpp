#pragma once

#include "launch/options/options.hpp"
#include "runtime/os/checkpoint/snapshot_watch.hpp"
#include "runtime/os/copies/replication_source.hpp"
#include "runtime/os/copies/replication_target.hpp"
#include "runtime/os/copies/snapshot_copier.hpp"
#include "runtime/os/io_thread.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::launch {

/// Copies of snapshots between the nodes of a job, with a thread and links of their own: so many
/// bytes are not to delay a sign of life.
class snapshot_copies {
 public:
  /// `where`: this node's own address; port 0 picks a free one. `memory`: of each local rank, for
  /// others' snapshots. The error says why this node can have no part in it.
  static result<std::unique_ptr<snapshot_copies>>
  open(const launcher_options& o, const node_name& node, const ports::endpoint& where,
       const std::vector<std::vector<int>>& memory, const log::sink& sink);

  /// Where others give their pieces.
  ports::endpoint where() const { return target_->where(); }

  /// The node's replication_host, which may outlive this: then it gives nothing any more.
  std::shared_ptr<ckpt::snapshot_copier>
  copier_of(const std::shared_ptr<ckpt::snapshot_watch>& memory) const;

 private:
  snapshot_copies() = default;

  // In this order: links end before the thread does.
  os::io_thread io_;
  std::shared_ptr<ports::transport> transport_;
  const std::shared_ptr<ckpt::shared_rank_owners> owners_ =
      std::make_shared<ckpt::shared_rank_owners>();
  std::unique_ptr<ckpt::replication_target> target_;
  std::shared_ptr<ckpt::replication_source> source_;
};

} // namespace troupe::launch
