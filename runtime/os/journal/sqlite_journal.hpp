#pragma once

#include "runtime/os/io_thread.hpp"
#include "runtime/os/journal/sqlite.hpp"
#include "runtime/ports/journal_store.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include <unistd.h>

namespace troupe::os {

/// What an acknowledged record survives.
enum class durability {
  process,  ///< The end of this process, however sudden: its bytes are with the kernel.
  power_cut ///< A power cut too, once it is synced: limits::journal_sync_within later, and what
            ///< the disk takes for it.
};

/// journal_store in one SQLite file, written by a thread of its own. Appends that wait together are
/// committed together.
///
/// A power cut may take the records of the last while, never earlier ones, and never tears one
/// (write-ahead log). Syncing before every acknowledgement would put a disk's slowest moment into
/// every recovery; ADR 5 weighs that. For the same reason a second thread does it: a disk that has
/// much to write holds a sync up for many seconds, and the next record must not wait behind it.
///
/// While open, the file is locked against every other master. Whatever was queued when the store is
/// destroyed is written, and its callbacks are called, before the destructor returns.
class sqlite_journal final : public ports::journal_store {
 public:
  /// Waits until what was written to a file is on its disk; 0, or -1 and errno.
  using sync_call = std::function<int(int descriptor)>;

  /// `refused` if the file is another master's, or a newer Troupe's, or cannot be opened; `invalid`
  /// if it is no journal. A file that is not ours is not changed.
  static result<std::unique_ptr<sqlite_journal>> open(const std::string& path, durability keeps,
                                                      sync_call sync = ::fdatasync);
  ~sqlite_journal() override;

  epoch opened_as() const override { return opened_as_; }
  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) override;
  void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) override;

 private:
  struct append_request {
    messages::any_msg record;
    std::function<void(result<std::uint64_t>)> done;
  };
  struct read_request {
    std::function<void(result<std::vector<messages::any_msg>>)> done;
  };
  using request = std::variant<append_request, read_request>;
  class syncer;

  sqlite_journal(std::string path, database db, epoch opened_as, std::uint64_t last,
                 std::unique_ptr<syncer> sync);

  bool queue(request asked);
  void work();
  void append_group(const std::vector<append_request>& group);
  result<void> commit(const std::vector<append_request>& group);
  result<std::vector<messages::any_msg>> read();

  std::string path_;
  database db_;
  epoch opened_as_;
  std::uint64_t last_; ///< index of the last record

  std::mutex mutex_;
  std::deque<request> queue_; ///< under mutex_; work() is posted whenever it is not empty

  std::unique_ptr<syncer> sync_; ///< none if records need only survive the process

  io_thread thread_; ///< the last member: what it runs uses all others
};

} // namespace troupe::os
