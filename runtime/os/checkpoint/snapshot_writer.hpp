#pragma once

#include "ckpt/arena/slots.hpp"
#include "ckpt/catalog/checkpoint_host.hpp"
#include "runtime/os/checkpoint/place_thread.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace troupe::ckpt {

/// The real checkpoint_host: reads snapshots in the memory of a node's training processes and
/// writes them to files in directories. A thread of its own looks at the memory; each place has two
/// more, of which one writes and one completes steps, so that neither waits for the other's disk.
///
/// Without it a training process would have to wait for the disk, and a process that has died could
/// not have its last snapshot written. The memory is inherited from the keeper, so a snapshot can
/// be found and written whatever became of the process that made it.
///
/// A training process could take away the memory that is being read, and end this one with that; it
/// shares a user and a fate with it, and a successor hears of all requested snapshots again.
class snapshot_writer final : public checkpoint_host {
 public:
  /// Gives a snapshot's pieces to their targets: replication_source::give, or a refusal.
  using replicator = std::function<void(const snapshot_to_copy&, ports::bytes_view,
                                        std::function<void(result<void>)>)>;

  /// The descriptors of each local rank's arena, as troupe_ckpt.h has them; they stay the
  /// caller's. `refused` if the memory cannot be mapped. Without `replicate` copies are refused.
  /// What it was asked for and has not ended when this goes, it must not call back for.
  static result<std::shared_ptr<snapshot_writer>> open(const std::vector<std::vector<int>>& arenas,
                                                       node_name node, replicator replicate = {});
  ~snapshot_writer() override;

  void watch(std::function<void(const persist_request&)> on_request) override;
  void watch_copies(std::function<void(const snapshot_to_copy&)> on_request) override;
  void look(std::function<void()> done) override;
  void write(const persist_request& snapshot,
             std::function<void(result<ports::receipt>)> done) override;
  void commit(const commit_order& order, std::function<void(result<completed>)> done) override;
  void finalize(const persist_request& snapshot, const result<void>& how) override;
  void copy(const snapshot_to_copy& snapshot, std::function<void(result<void>)> done) override;
  void finalize_copy(const snapshot_to_copy& snapshot, const result<void>& how) override;
  void request_newest() override;

 private:
  struct arena {
    os::shared_memory table;
    std::array<int, slot_table::slots_max> memory{};
    slots words() const { return {*reinterpret_cast<slot_table*>(table.data()), 2}; }
  };

  using snapshot_id = std::tuple<local_rank, std::size_t, std::uint64_t>;
  static snapshot_id id_of(const snapshot_here& snapshot) {
    return {snapshot.local, snapshot.slot, snapshot.sequence};
  }

  snapshot_writer(std::vector<arena> arenas, std::vector<os::wake_event> wake_events,
                  os::wake_event wake, node_name node, replicator replicate);

  void run();
  void ask(std::function<void()> work);
  void tell_persist_request();
  void tell_persist_requests_in(slots& words, std::size_t slot, local_rank local);
  void tell_copy_requests_in(slots& words, std::size_t slot, local_rank local);
  /// Its memory, sealed. Precondition: its slot is held.
  result<os::shared_memory> mapped(const snapshot_here& snapshot);
  result<ports::receipt> write_now(place_writer& to, const persist_request& snapshot);
  void copy_now(const snapshot_to_copy& snapshot);
  void copied(const snapshot_to_copy& snapshot, const result<void>& how);
  struct place_threads {
    os::place_thread writes, commits;
    bool idle() const { return writes.idle() && commits.idle(); }
  };
  /// Nothing if as many places as there may be are in use.
  place_threads* at(const std::string& place);

  std::vector<arena> arenas_;
  std::vector<os::wake_event> wake_events_; ///< training processes signal the first
  os::wake_event wake_;
  const node_name node_;
  const replicator replicate_;

  // The thread's.
  std::function<void(const persist_request&)> on_request_;
  std::function<void(const snapshot_to_copy&)> on_copy_request_;
  /// What was told.
  std::set<snapshot_id> told_, told_copies_;
  /// Being copied: its memory, and its waiters, a saver that crashed among them.
  struct copying {
    os::shared_memory memory;
    std::vector<std::function<void(result<void>)>> done;
  };
  std::map<snapshot_id, copying> copies_;

  std::mutex lock_;
  std::deque<std::function<void()>> work_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  /// The thread's. Gone first: their work uses what is above.
  std::map<std::string, std::unique_ptr<place_threads>> places_;
};

} // namespace troupe::ckpt
