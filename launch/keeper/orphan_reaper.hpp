#pragma once

#include "launch/keeper/control_group.hpp"
#include "runtime/base/result.hpp"

#include <functional>
#include <string>

#include <sys/types.h>

namespace troupe::launch {

struct orphan_reaper_options {
  std::string mark; ///< as in keeper_options
  /// Those in it are killed as well, and it is removed; may be none.
  const control_group* group = nullptr;
  /// Ends what other launchers have left. Called in the new process, at once and a second time
  /// after limits::second_look_after: a launcher does not wait for what is done there.
  std::function<void()> tidy_after_others;
  std::function<void()> tidy_up;
  std::function<pid_t()> fork; ///< as in keeper_options
};

/// A process that waits for this one to be killed, and then kills all processes that carry the
/// mark: those that had left their parents, their group and their session, and that no parent-death
/// signal reaches. Nothing is polled until then. A process that has cleared its environment is
/// found in the group only.
///
/// It hears of the end by a parent-death signal, so this process must have one thread.
///
/// Answers its pid; `unavailable` if the system refuses to fork. It must be killed before this
/// process ends otherwise.
result<pid_t> start_orphan_reaper(const orphan_reaper_options& options);

/// SIGKILL for all processes that carry the mark, again and again until none is left, for
/// limits::burial_within at most.
void end_marked(const std::string& mark);

/// Why fork() failed, with the limits that a user can raise.
std::string fork_problem(int error_number);

} // namespace troupe::launch
