#pragma once

#include "runtime/os/console/console_relay.hpp"
#include "runtime/os/console/followed_file.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/os/regular_file.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <string>
#include <thread>

namespace troupe::os {

/// Copies the files of one console stream, one block of one file at a time, in turn.
class file_relay::follower {
 public:
  static result<std::shared_ptr<follower>> start(console_target target);

  /// Lets the thread go; it ends when the console lets it.
  void stop();

  result<void> follow(id number, const ports::relayed_file& file);
  void finish(id number);

  void finish_all();
  /// Whether all was shown within `patience` of the last byte taken and before `deadline`.
  bool wait_until_idle(duration patience, instant deadline);
  std::vector<ports::unshown_output> unshown();

  /// Whether the console is a file.
  bool shows_on_disk() const { return is_regular_file(target_.descriptor); }

 private:
  follower(console_target target, unique_fd changes, unique_fd wakeup)
      : target_(std::move(target)), changes_(std::move(changes)), wakeup_(std::move(wakeup)) {}

  // The thread's.
  void run();
  bool take_orders();
  void note_changes();
  void mark_ready(const std::shared_ptr<followed_file>& file);
  std::shared_ptr<followed_file> next_ready();
  void serve(const std::shared_ptr<followed_file>& file);
  void pass_on(const std::shared_ptr<followed_file>& file);
  bool write_shown();
  void let_go_if_ended(const std::shared_ptr<followed_file>& file);
  void wait();
  void end_waiting_line();

  void wake() const;

  console_target target_;
  unique_fd changes_; ///< inotify
  unique_fd wakeup_;  ///< eventfd
  std::thread thread_;
  std::future<void> ended_;

  // Shared; under mutex_.
  std::mutex mutex_;
  std::condition_variable idle_;
  std::map<id, std::shared_ptr<followed_file>> files_;
  std::deque<std::shared_ptr<followed_file>> arrived_;
  std::deque<std::shared_ptr<followed_file>> finished_;
  std::vector<ports::unshown_output> lost_; ///< of files that were let go
  bool stopping_ = false;

  std::atomic<std::uint64_t> taken_{0}; ///< bytes the console took

  // The thread's.
  std::map<int, std::shared_ptr<followed_file>> by_watch_;
  std::deque<std::shared_ptr<followed_file>> ready_;
  /// The file within a line that passes in pieces: until its end no other file is shown.
  std::shared_ptr<followed_file> within_line_;
  instant piece_until_{};
  std::unique_lock<std::mutex> alone_;
  std::string block_, shown_, kept_;
  bool broken_ = false; ///< the console takes nothing more, ever
};

} // namespace troupe::os
