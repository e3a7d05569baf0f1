#pragma once

#include "ckpt/arena/slots.hpp"
#include "ckpt/catalog/snapshot_here.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/snapshot_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::ckpt {

/// Watches the snapshot memory of a node's training processes, on a thread of its own, for those
/// parts of the node that get snapshots out of it.
///
/// A process requests something of a snapshot by a bit in its slot's word, and signals an event. A
/// signal wakes one reader only, so one thread waits for it and looks for all of them. A snapshot
/// may be requested for several purposes at once; what is common to them stands here.
///
/// A training process could take away the memory that is being read, and end this one with that; it
/// shares a user and a fate with it, and a successor hears of all requested snapshots again.
class snapshot_watch {
 public:
  /// Called on the thread for each whole snapshot, those of one local rank by age, the oldest
  /// first: it has waited longest. Whether anything is requested of it, the words say.
  using looker = std::function<void(const slots& words, const snapshot_here& snapshot)>;

  /// The descriptors of each local rank's arena, as troupe_ckpt.h has them; they stay the caller's,
  /// and open. `refused` if the memory cannot be mapped.
  static result<std::shared_ptr<snapshot_watch>> open(const std::vector<std::vector<int>>& arenas);
  ~snapshot_watch();
  snapshot_watch(const snapshot_watch&) = delete;
  snapshot_watch& operator=(const snapshot_watch&) = delete;

  /// Done on the thread, in this order.
  void ask(std::function<void()> work);
  /// The same, after a look that sees all that was requested before this call.
  void ask_after_look(std::function<void()> work);
  /// From now on this one looks for that purpose, at once and after each signal.
  void look_for(purpose what, looker with);
  /// None looks for it any more, and all that was asked for before is done. Not from the thread.
  void leave(purpose what);

  // Of any thread.
  std::size_t local_ranks() const { return arenas_.size(); }
  slots words(local_rank local) const { return arenas_.at(local).memory.words(); }
  /// Its memory, mapped, with its checksums filled in. Precondition: its slot is held.
  result<os::shared_memory> sealed(const snapshot_here& snapshot);
  /// The request's bit goes, and the process that waits for the outcome hears it.
  void finalize(const snapshot_here& snapshot, const result<void>& how, purpose what);

 private:
  struct arena {
    os::snapshot_memory memory;
    /// A snapshot may be read for two purposes at once, and is sealed once.
    std::unique_ptr<std::mutex> sealing = std::make_unique<std::mutex>();
  };

  snapshot_watch(std::vector<arena> arenas, std::vector<os::wake_event> wake_events,
                 os::wake_event wake);
  void run();
  void look();

  std::vector<arena> arenas_;
  std::vector<os::wake_event> wake_events_; ///< training processes signal the first
  os::wake_event wake_;
  std::map<purpose, looker> lookers_; ///< the thread's

  std::mutex lock_;
  std::deque<std::function<void()>> work_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// "The snapshot of step 3 of rank 1 is gone".
tl::unexpected<error> gone(const snapshot_here& snapshot);

/// How long a training process says that something may take, within reason.
duration patience_of(std::uint64_t milliseconds);

} // namespace troupe::ckpt
