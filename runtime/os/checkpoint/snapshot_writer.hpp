#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "runtime/os/checkpoint/place_thread.hpp"
#include "runtime/os/checkpoint/snapshot_watch.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace troupe::ckpt {

/// The real checkpoint_host: reads snapshots in the memory of a node's training processes and
/// writes them to files in directories. A watch's thread looks at the memory; each place has two of
/// its own, of which one writes and one completes steps, so that neither waits for the other's
/// disk.
///
/// Without it a training process would have to wait for the disk, and a process that has died could
/// not have its last snapshot written. The memory is inherited from the keeper, so a snapshot can
/// be found and written whatever became of the process that made it.
class snapshot_writer final : public checkpoint_host {
 public:
  snapshot_writer(std::shared_ptr<snapshot_watch> memory, node_name node);
  /// Gives up what is being written. It must not be asked for anything any more.
  ~snapshot_writer() override;

  void watch(std::function<void(const persist_request&)> on_request) override;
  void look(std::function<void()> done) override;
  void write(const persist_request& snapshot,
             std::function<void(result<ports::receipt>)> done) override;
  void commit(const commit_order& order, std::function<void(result<completed>)> done) override;
  void retain(const retain_order& order) override;
  void finalize(const persist_request& snapshot, const result<void>& how) override;
  void request_newest() override;

 private:
  struct place_threads {
    os::place_thread writes, commits;
    bool idle() const { return writes.idle() && commits.idle(); }
  };

  void tell(const slots& words, const snapshot_here& snapshot);
  result<ports::receipt> write_now(place_writer& to, const persist_request& snapshot);
  /// Nothing if as many places as there may be are in use.
  place_threads* at(const std::string& place);

  const std::shared_ptr<snapshot_watch> memory_;
  const node_name node_;
  std::atomic<bool> stop_{false};

  // The watch's thread's.
  std::function<void(const persist_request&)> on_request_;
  std::set<snapshot_key> told_;
  /// Gone first: their work uses what is above.
  std::map<std::string, std::unique_ptr<place_threads>> places_;
};

} // namespace troupe::ckpt
