#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/io_thread.hpp"

#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::os {

/// Syncs a journal's write-ahead log, so that a power cut takes no more than the last second of it.
/// SQLite itself would do that as a part of a checkpoint only, with the database held: a disk that
/// has much to write holds a sync up for many seconds, and every record would wait behind it. So a
/// thread of its own does it.
class journal_syncer {
 public:
  /// Waits until what was written to a file is on its disk; 0, or -1 and errno.
  using sync_call = std::function<int(int descriptor)>;

  static result<std::unique_ptr<journal_syncer>> start(const std::string& path, sync_call sync);
  /// Waits for a sync that is under way: it uses the descriptor.
  ~journal_syncer();

  /// There is something new to sync.
  void later();

  /// An error once the disk has failed to take something. What it was cannot be known again: the
  /// kernel tells only once and then forgets the bytes.
  result<void> state() const;

 private:
  journal_syncer(std::string path, int descriptor, sync_call sync);

  void sync();
  /// A new file is found again only once its directory is on the disk as well.
  void sync_name();

  std::string path_;
  int descriptor_;
  sync_call sync_;
  bool named_ = false;
  std::atomic<bool> due_{false};
  std::atomic<int> error_{0};
  std::optional<boost::asio::steady_timer> timer_; ///< the thread's
  io_thread thread_{"troupe-sync"}; ///< the last member: what it runs uses all others
};

} // namespace troupe::os
