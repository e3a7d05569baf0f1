#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Has pieces of this node's snapshots held at other nodes, each from *copies requested* to
/// *finalized*.
///
/// A node that is lost takes the snapshots in its memory along, and a slot whose request gets no
/// answer is never free again. So each request is answered once: held by others, or not, with the
/// reason. Whether all of a step is held so its ranks find out among themselves; neither the master
/// nor the persister has a part in it. What fails is not tried again: a newer step is.
class replicator_core {
 public:
  /// Answered by copied(), in any case: the host has the time that the process named.
  struct copy {
    ckpt::snapshot_to_copy snapshot;
  };
  /// The request's bit in the slot's word goes: the process that waits for the outcome hears it,
  /// and the slot may be used again.
  struct finalize {
    ckpt::snapshot_to_copy snapshot;
    result<void> how;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<copy, finalize, note>;
  using effects = std::vector<effect>;

  explicit replicator_core(node_name node);

  // From the host.
  /// A snapshot that is known already is the same one. What can be refused is refused at once and
  /// said, so that no slot stays bound by a wish that was dropped.
  effects copies_requested(instant now, const ckpt::snapshot_to_copy& snapshot);
  effects copied(instant now, const ckpt::snapshot_to_copy& snapshot, const result<void>& how);

  std::string in_words() const;

 private:
  node_name node_;
  /// Being copied; bounded by limits::persist_requests_max. No handover keeps it: the bits in
  /// shared memory outlive this actor, and the host tells the next one of them.
  std::set<ckpt::snapshot_key> copies_;
};

} // namespace troupe::actors
