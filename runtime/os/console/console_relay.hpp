#pragma once

#include "runtime/ports/console.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::os {

/// A stream and its lock: each writer holds the lock for whole lines.
struct console_target {
  int descriptor = -1;
  std::shared_ptr<std::mutex> alone;
};

/// The real console_relay. A thread per stream, started when the first file is followed, waits for
/// inotify and copies; the files are the queue. It may block on the console, and then blocks only
/// the writers under the same lock.
class file_relay final : public ports::console_relay {
 public:
  /// `out` and `err` may be the same place, if they share a lock.
  file_relay(console_target out, console_target err);
  /// Ends without showing the rest.
  ~file_relay() override;

  result<id> follow(const ports::relayed_file& file) override;
  void finish(id file) override;
  std::vector<ports::unshown_output> drain(duration patience) override;

 private:
  class follower;

  result<std::shared_ptr<follower>> follower_of(ports::console_stream stream);
  std::vector<std::shared_ptr<follower>> followers();

  std::mutex mutex_;
  std::array<console_target, 2> targets_;
  std::array<std::shared_ptr<follower>, 2> followers_;
  id last_ = 0;
};

/// This process's stdout and stderr. What is written to stderr takes the lock that the log's
/// terminal has; so does stdout, if it is the same place.
std::array<console_target, 2> own_console();

} // namespace troupe::os
