#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ports {

/// What to run. `argv[0]` is searched in the PATH of `environment` if it has no slash.
struct process_spec {
  std::vector<std::string> argv;
  std::vector<std::string> environment; ///< "NAME=value", the whole of it
  std::string working_directory;        ///< empty: the parent's
  std::string stdout_file;              ///< empty: the parent's; else created or truncated
  std::string stderr_file;
  /// Of ours; the process has them under the same numbers.
  std::vector<int> descriptors;
  /// Tells an adopting supervisor which one it is.
  std::uint64_t label = 0;
};

/// How a process ended.
struct exit_status {
  bool signalled = false;
  int number = 0; ///< exit status or signal

  /// As torchrun prints it: the status, or minus the signal's number.
  int code() const { return signalled ? -number : number; }
  bool success() const { return !signalled && number == 0; }
};

/// "exit code 7", "signal 9 (SIGKILL)".
std::string to_string(const exit_status& s);

/// A process we started. Unique within the life of the host, unlike a pid.
using process_id = std::uint64_t;

struct started {
  process_id process = 0;
  std::int32_t pid = 0;
};

/// A process that an earlier supervisor started and that has outlived it, or ended meanwhile.
struct survivor {
  process_id process = 0;
  std::int32_t pid = 0;
  std::uint64_t label = 0;
};

/// How long a sweep leaves processes to themselves, from its begin on.
struct sweep_order {
  duration quiet{};  ///< then they are asked to end
  duration within{}; ///< then they are killed; never less than `quiet`; zero: at once
};

/// Processes that a sweep waits for.
struct left_behind {
  std::string processes; ///< some of them by name, for people
  std::size_t count = 0;
  duration quiet{}; ///< until they are asked to end; zero: they have been
  duration left{};  ///< until they are killed
};

/// What a sweep has done. Processes that ended by themselves are not counted.
struct swept {
  std::size_t killed = 0;
  std::size_t ended = 0; ///< once they were asked to
};

/// The training processes of this machine. Every process is the leader of its own session and
/// process group and ends with us (parent-death signal); its orphaned descendants become our
/// children (subreaper). Thread-safe.
class process_host {
 public:
  virtual ~process_host() = default;

  /// Runs the job on a thread of the host's own, after those before it. An actor has done here what
  /// may take long on a slow disk: to open files, to execute a program, to read what it wrote.
  virtual void aside(std::function<void()> job) = 0;

  /// Called once, from the host's thread, when the process has ended and been reaped.
  using ended = std::function<void(exit_status)>;

  /// Blocks until the program runs; `on_end` may be called before that. `invalid` when the program
  /// cannot be executed; `what` says why in one line.
  virtual result<started> start(const process_spec& spec, ended on_end) = 0;

  /// Those of the supervisor before this one. The caller takes them over, to adopt them one by
  /// one; those left are ended by a sweep.
  virtual std::vector<survivor> survivors() { return {}; }

  /// Goes on as if we had started it: also an end that has come already is told.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): implementations keep it
  virtual void adopt(process_id /*survivor*/, ended /*on_end*/) {}

  /// Sends a signal to the process's whole group. A process that has ended is not an error.
  virtual void signal(process_id process, int number) = 0;

  /// The same for the process alone: what it has started may die of a signal that only the process
  /// itself knows how to take.
  virtual void signal_alone(process_id process, int number) = 0;

  /// Whether the process has a handler for it, and would not just end; may look into a file.
  virtual bool takes_signal(std::int32_t pid, int number) = 0;

  /// Ends what our ended processes have left behind: every descendant of ours that is neither a
  /// process we started nor below a living one. They have the order's time; what was signalled with
  /// its worker is not asked again. Calls `done` once they are reaped, at the latest
  /// limits::kill_within after they were killed, and `waits` at most once before that, if it takes
  /// long. What is started meanwhile waits for `done`.
  virtual void sweep(const sweep_order& order, std::function<void(const left_behind&)> waits,
                     std::function<void(const swept&)> done) = 0;

  /// A TCP port that is free on `address` now, for a worker to listen on.
  virtual result<std::uint16_t> free_port(const std::string& address) = 0;

  /// The wall clock in milliseconds since 1970, for reports to people.
  virtual std::int64_t unix_time_ms() = 0;

  /// The content of a small file a worker wrote (its error file), at most `limit` bytes; nothing if
  /// there is none.
  virtual std::optional<std::string> read_small_file(const std::string& path,
                                                     std::size_t limit) = 0;

  /// The last `limit` bytes of a file a worker wrote (its log), all of it if it is smaller; nothing
  /// if there is none.
  virtual std::optional<std::string> read_end_of_file(const std::string& path,
                                                      std::size_t limit) = 0;
};

} // namespace troupe::ports
