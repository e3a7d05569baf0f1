#pragma once

#include "runtime/os/keeper/keeper_client.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::os {

struct keeper_options {
  /// Signals with which the user ends the job, and others that are to be passed on. The rest do to
  /// the keeper what they do to any program.
  std::vector<int> ending_signals;
  std::vector<int> passed_on_signals;
  /// The node supervisor, in a process of its own; answers the launcher's exit code.
  std::function<int(keeper_client&)> supervise;
  /// A store server, in a process of its own: tells `answer` where it listens (see
  /// kept_store_host), and serves until it is killed.
  std::function<void(const packet& order, const unique_fd& answer)> serve_store;
  /// For the user, on stderr.
  std::function<void(const std::string&)> complain;
  /// "NAME=value" in the environment of whatever descends from us, and of nothing else: by it what
  /// has detached itself is found when nobody is left who knows it. Who descends from a launcher
  /// below us has something behind it, after a slash. Empty: it is not looked for.
  std::string mark;
  /// Whether what is started lives in a control group of its own, where one can be made: then
  /// nobody gets away who has cleared his environment, and nobody who forks without end.
  bool grouped = true;
  /// Called by the last process left when the keeper was killed.
  std::function<void()> tidy_up = [] {};
};

/// The launcher's own process: starts the supervisor, again when it crashes, and stays the parent
/// of all processes meanwhile. No thread, and none may have been started before. Answers the exit
/// code; in the processes it forks it does not return.
///
/// If this process is killed, the kernel kills supervisor, workers and store (parent-death
/// signals), and a last process, which belongs to nobody's group, what they had left behind.
int run_keeper(const keeper_options& options);

} // namespace troupe::os
