#pragma once

#include "runtime/os/io_thread.hpp"
#include "runtime/os/journal/journal_file.hpp"
#include "runtime/os/journal/journal_syncer.hpp"
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
  using sync_call = journal_syncer::sync_call;

  /// As journal_file::open().
  static result<std::unique_ptr<sqlite_journal>> open(const std::string& path,
                                                      const journal_owner& mine, durability keeps,
                                                      sync_call sync = ::fdatasync);
  ~sqlite_journal() override;

  /// What the user should know of the journal that was found.
  const std::vector<log::event>& notices() const { return notices_; }

  term opened_as() const override { return opened_as_; }
  bool taken_up() const override { return taken_up_; }
  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) override;
  void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) override;
  void compact(selection keep, std::function<void(result<void>)> done) override;

 private:
  struct append_request {
    messages::any_msg record;
    std::function<void(result<std::uint64_t>)> done;
  };
  struct read_request {
    std::function<void(result<std::vector<messages::any_msg>>)> done;
  };
  struct compact_request {
    selection keep;
    std::function<void(result<void>)> done;
  };
  using request = std::variant<append_request, read_request, compact_request>;

  sqlite_journal(std::string path, journal_file file, std::unique_ptr<journal_syncer> sync);

  bool queue(request asked);
  void work();
  void append_group(const std::vector<append_request>& group);
  result<void> commit(const std::vector<append_request>& group);
  result<void> compact_now(const selection& keep);
  error too_many_wait() const;

  std::string path_;
  journal_file file_;
  term opened_as_;
  bool taken_up_;
  std::vector<log::event> notices_;

  std::mutex mutex_;
  std::deque<request> queue_; ///< under mutex_; work() is posted whenever it is not empty

  std::unique_ptr<journal_syncer> sync_; ///< none if records need only survive the process

  io_thread thread_; ///< the last member: what it runs uses all others
};

} // namespace troupe::os
