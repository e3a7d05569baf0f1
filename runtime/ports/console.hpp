#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::ports {

/// The launcher's own output streams.
enum class console_stream : std::uint8_t { out, err };

/// A file that a process writes to, to be shown line by line on the console as it grows.
struct relayed_file {
  std::string path; ///< created if it is not there yet
  console_stream to = console_stream::out;
  std::string prefix; ///< before every line
  /// Lines that contain any of these go, with their prefix, to the end of `filtered_path` too.
  std::vector<std::string> needles;
  std::string filtered_path;
  /// How much of it was shown, for a successor: it begins there. Outlives the relay.
  std::shared_ptr<std::atomic<std::uint64_t>> progress;
  /// Its bytes are shown as they are, without a prefix, as if the process wrote to the console
  /// itself; of what was shown the file keeps the end only.
  bool passes_through = false;
};

/// What the console did not take.
struct unshown_output {
  std::string path;
  std::uint64_t bytes = 0;
};

/// Shows files on the console while they grow. A line appears whole and once, in its file's order,
/// and never mixed with another; a line that is not finished waits for its end or its file's. A
/// line too long to be held (limits::console_line_max) passes in pieces, under one prefix.
/// Thread-safe; only drain() waits for the console.
class console_relay {
 public:
  virtual ~console_relay() = default;

  using id = std::uint64_t;

  /// From the file's beginning. `refused`, with a line for the user, if it cannot be followed, or
  /// is to pass through where its file system has no room, or cannot give back what was shown.
  virtual result<id> follow(const relayed_file& file) = 0;

  /// The file is complete: what it has now is still shown, then it is let go.
  virtual void finish(id file) = 0;

  /// Finishes all files and waits until everything is shown. Gives up once the console has taken
  /// nothing for `patience`, or after limits::console_drain_within; answers what is then only in
  /// the files.
  virtual std::vector<unshown_output> drain(duration patience) = 0;
};

} // namespace troupe::ports
