#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "runtime/ports/storage.hpp"

#include <functional>
#include <memory>

namespace troupe::ckpt {

/// The replication source: gives pieces of snapshots to their targets over bulk links
/// (messages/copies.capnp), of each local rank one snapshot after the other, on a thread of its
/// own. Thread-safe.
///
/// It reads the snapshot where the training process has made it, so training does not wait, and it
/// sends no faster than the node's bulk links may, so that the network stays free for training.
class replication_source {
 public:
  replication_source(std::shared_ptr<ports::bulk_links> bulk, const node_name& node);
  /// Callers that wait hear that it was given up.
  ~replication_source();

  /// `memory` stays as it is until `done` is called, once, from that thread, at the latest a little
  /// after `snapshot.within`. Its checksums are filled in. `done` is called at once, with
  /// `overloaded`, if limits::persist_requests_max are waiting already.
  void give(const snapshot_to_copy& snapshot, ports::bytes_view memory,
            std::function<void(result<void>)> done);

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::ckpt
