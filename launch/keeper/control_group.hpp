#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::launch {

/// The directory of a process's own control group (version 2), by what it reads in
/// /proc/self/mountinfo and /proc/self/cgroup. `unavailable`, with the reason, if it cannot be
/// seen.
result<std::string> own_control_group(const std::string& mountinfo, const std::string& cgroup);

/// Whether a process that is started in the group that is open here lives: a trial. May be called
/// by any thread that has all signals blocked.
bool takes_processes(int group);

/// A control group (version 2) below our own: a net for the processes in it, which do not get out
/// by detaching themselves. It has no controllers, so all limits and accounts stay those of our own
/// group.
///
/// Linux counts how often a group was killed, and kills a process that is cloned into a group with
/// another count than its parent's group has. So no process may be put into a group that was
/// killed: processes are put into groups below this one, and into a new one after each kill().
///
/// An open group is locked, so its owner is known to live. One without a lock, of the same user,
/// was left by launchers that were killed with all processes that would have removed it.
class control_group {
 public:
  /// `unavailable`, with the reason in a few words, where none can be made, or none of use.
  static result<control_group> make();
  /// The same below another group, for tests.
  static result<control_group> make_below(const std::string& parent);

  /// The same group, kept open by another file descriptor.
  control_group(std::string path, os::unique_fd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  const std::string& path() const { return path_; }
  int directory() const { return directory_.get(); }

  /// The open directory of a new group below it; none if none can be made.
  os::unique_fd make_inner() const;

  /// The processes in it or in a group below it, but for zombies.
  std::vector<pid_t> members() const;
  /// SIGKILL for all of them at once, also for a process that is just being forked.
  void kill() const;
  /// Kills and removes the groups beside it that have no lock, limits::abandoned_groups_looked_at
  /// at most. What the kernel has not taken apart after a few milliseconds stays for the next look.
  void end_abandoned() const;
  /// Removes the groups below it that are empty.
  void tidy() const;
  /// Removes it and all groups below it; false while a process is in one of them.
  bool remove() const;

 private:
  std::string path_;
  os::unique_fd directory_;
};

} // namespace troupe::launch
