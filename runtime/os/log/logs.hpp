#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/log/json_line.hpp"

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

namespace troupe::os {

/// How much the console tells.
enum class verbosity {
  quiet,   ///< warnings and errors
  normal,  ///< notices besides
  verbose, ///< everything, each line with its source
};

struct log_options {
  verbosity console = verbosity::normal;
  std::FILE* stream = stderr;
  /// Gets everything, one JSON object per line, behind what is there already; empty: none.
  std::string json_file;
  /// Past this many lines that wait for a slow place, the oldest is dropped. Each takes 250 bytes
  /// from the start.
  std::size_t queue_max = limits::log_queue_max;
  /// Gets each event as well, on the thread that tells it, and must not wait; empty: none.
  log::sink also;
  /// In each line of the file.
  log_origin origin;
};

/// Where log events go: plain lines for people, JSON lines for machines, each written by a
/// thread of its own. A caller never waits for a terminal or a disk: when more than
/// `queue_max` lines wait, the oldest is dropped, and at the end it is said how many
/// were. A place that cannot be written to any more is announced once on the other one, and ends
/// nothing.
class logs {
 public:
  /// `invalid` if the file cannot be opened.
  static result<std::unique_ptr<logs>> open(const log_options& options);
  /// Writes what is queued, for at most limits::log_end_within, or log_end_on_disk_within
  /// if the console is a file. What a console does not take by then is told in the file. What is
  /// logged later is dropped.
  ~logs();

  /// May be copied, kept, and called from any thread, also after this object is gone.
  log::sink sink() const;

 private:
  class outputs;
  explicit logs(std::shared_ptr<outputs> to);

  std::shared_ptr<outputs> to_;
};

/// Gives every event to all of them in turn.
log::sink fan_out(std::vector<log::sink> sinks);

} // namespace troupe::os
