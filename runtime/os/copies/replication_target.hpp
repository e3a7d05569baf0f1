#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/copies/shared_rank_owners.hpp"
#include "runtime/ports/bulk_links.hpp"

#include <memory>
#include <vector>

namespace troupe::ckpt {

/// Holds pieces of other nodes' snapshots (messages/copies.capnp), in memory that outlives this
/// process: an arena for each local rank, whose slots are `held_piece`s. It serves what comes in on
/// the node's bulk links for copies; a node has one of these at a time.
class replication_target {
 public:
  /// A source may give as the ranks that `owners` says are its node's. The descriptors of the
  /// arenas stay the caller's; what was half there is dropped. `refused` with a line if the memory
  /// cannot be mapped. `sink` hears of stripes that break.
  static result<std::unique_ptr<replication_target>>
  open(const std::shared_ptr<ports::bulk_links>& bulk,
       std::shared_ptr<const shared_rank_owners> owners,
       const std::vector<std::vector<int>>& arenas, log::sink sink);
  ~replication_target();

 private:
  class impl;
  explicit replication_target(std::unique_ptr<impl> own);
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::ckpt
