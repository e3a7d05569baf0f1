#pragma once

#include "runtime/os/io_thread.hpp"
#include "runtime/os/journal/sqlite.hpp"
#include "runtime/ports/journal_store.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::os {

/// journal_store in one SQLite file, written by a thread of its own. Appends that wait together are
/// committed together.
///
/// An acknowledged record survives the end of this process, however sudden: its bytes are with the
/// kernel. It survives a power cut of the machine once it has been synced, at the latest
/// limits::journal_sync_within later; a power cut may take the records of that last while, never
/// earlier ones, and never tears one (write-ahead log, synchronous=NORMAL). Syncing before every
/// acknowledgement would put a disk's slowest moment into every recovery; ADR 5 weighs that.
///
/// While open, the file is locked against every other master. Whatever was queued when the store is
/// destroyed is written, and its callbacks are called, before the destructor returns.
class sqlite_journal final : public ports::journal_store {
 public:
  /// `refused` if the file is another master's, or a newer Troupe's, or cannot be opened; `invalid`
  /// if it is no journal. A file that is not ours is not changed.
  static result<std::unique_ptr<sqlite_journal>> open(const std::string& path);
  ~sqlite_journal() override;

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

  sqlite_journal(std::string path, database db, std::uint64_t last);

  bool queue(request asked);
  void work();
  void sync_later();
  void append_group(const std::vector<append_request>& group);
  result<void> commit(const std::vector<append_request>& group);
  result<std::vector<messages::any_msg>> read();

  std::string path_;
  database db_;
  std::uint64_t last_; ///< index of the last record

  std::mutex mutex_;
  std::deque<request> queue_; ///< under mutex_; work() is posted whenever it is not empty

  /// Set while records wait to be synced; the thread's.
  std::optional<boost::asio::steady_timer> sync_;

  io_thread thread_; ///< the last member: what it runs uses all others
};

} // namespace troupe::os
