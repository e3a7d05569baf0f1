#pragma once

#include "launch/keeper/keeper_client.hpp"
#include "launch/keeper/keeper_core.hpp"

#include <functional>
#include <string>
#include <vector>

#include <unistd.h>

namespace troupe::launch {

struct keeper_options {
  /// Signals with which the user ends the job, and others that are to be passed on. The rest do to
  /// the keeper what they do to any program.
  std::vector<int> ending_signals;
  std::vector<int> passed_on_signals;
  /// The node supervisor, in a process of its own; answers the launcher's exit code.
  std::function<int(keeper_client&)> supervise;
  /// A store server, in a process of its own: tells `answer` where it listens (see
  /// kept_store_host), and serves until it is killed.
  std::function<void(const store_order& order, const os::unique_fd& answer)> serve_store;
  /// For the user, on stderr.
  std::function<void(const std::string&)> report_error;
  /// "NAME=value" in the environment of whatever descends from us, and of nothing else: by it a
  /// process that has detached itself is found when no process is left that knows it. In the
  /// descendants of a launcher below us something follows the value, after a slash. Empty: it is
  /// not looked for.
  std::string mark;
  /// Whether what is started lives in a control group of its own, where one can be made: then no
  /// process gets away by clearing its environment or by forking without end.
  bool grouped = true;
  /// Called in the orphan reaper when it begins: for what earlier launchers have left. No launch
  /// waits for it.
  std::function<void()> tidy_after_others = [] {};
  /// Called by the last process left when the keeper was killed.
  std::function<void()> tidy_up = [] {};
  /// The directory with the life records of this user's launchers. If all processes of this one are
  /// killed at once, the last one among them, the next launcher finds the mark there. Empty: no
  /// record is made, and what other launchers have left is not looked for.
  std::string records;
  /// The system's call, which it may refuse at any time.
  std::function<pid_t()> fork = ::fork;
};

/// The launcher's own process: starts the supervisor, again when it crashes, and stays the parent
/// of all processes meanwhile. No thread, and none may have been started before. Answers the exit
/// code; in the processes it forks it does not return. A system that refuses to fork is asked
/// again.
///
/// If this process is killed, the kernel kills supervisor, workers and store (parent-death
/// signals). What they had left behind is killed by the orphan reaper, a last process in a session
/// of its own.
int run_keeper(const keeper_options& options);

} // namespace troupe::launch
