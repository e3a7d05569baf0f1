#include "launch/doctor/limits.hpp"
#include "launch/keeper/control_group.hpp"
#include "launch/options/values.hpp"
#include "launch/wiring/open_files.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sstream>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/// What the judges of limits.hpp are told.
namespace troupe::launch::doctor {

namespace fs = std::filesystem;

namespace {

template<class Resource>
limit soft_limit(Resource what) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0 || now.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return now.rlim_cur;
}

limit number_in(const fs::path& file) {
  return digits(stripped(os::contents_of(file)));
}

/// Of the groups above this process, of either version, the least that one leaves.
limit pids_left() {
  limit least;
  std::istringstream lines(os::contents_of("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const auto words = split(line, ':');
    if (words.size() < 3 || (!words[1].empty() && words[1] != "pids"))
      continue;
    const fs::path mount = words[1].empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
    for (auto group = mount / fs::path(words[2]).relative_path();; group = group.parent_path()) {
      const auto most = number_in(group / "pids.max"), used = number_in(group / "pids.current");
      if (most && used)
        least = std::min(least.value_or(*most), *most - std::min(*most, *used));
      if (group == mount || !group.has_relative_path())
        break;
    }
  }
  return least;
}

} // namespace

limits_facts look_at_limits(const launcher_options& o, const os::open_files_limit& open_files) {
  limits_facts seen;
  seen.workers = o.processes_per_node;
  seen.open_files = open_files;
  seen.open_files_needed = open_files_needed(o);
  seen.too_few_open_files = open_files_validation_error(o, open_files.now).value_or("");
  seen.processes = soft_limit(RLIMIT_NPROC);
  seen.pids_left = pids_left();
  seen.above_process_limit = ::geteuid() == 0;
  seen.core = soft_limit(RLIMIT_CORE);
  seen.file_size = soft_limit(RLIMIT_FSIZE);
  seen.locked = soft_limit(RLIMIT_MEMLOCK);
  seen.has_rdma = !os::entries_of("/dev/infiniband").empty();
  return seen;
}

process_facts look_at_processes() {
  process_facts seen;
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    seen.no_subreaper = "the system refuses child subreapers: " + os::system_message(errno);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  if (::access("/proc/thread-self/children", R_OK) != 0)
    seen.no_children = "/proc/thread-self/children cannot be read: " + os::system_message(errno);
  // As the keeper makes it, with a process in it on trial; it is gone again behind this. What
  // killed launchers have left is for the next launcher to end.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  if (const auto group = control_group::make(); !group) {
    seen.no_control_group = group.error().what;
  } else {
    if (const auto inner = group->make_inner(); !inner || !takes_processes(inner.get()))
      seen.no_control_group = "no process can be started in one";
    group->remove();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return seen;
}

} // namespace troupe::launch::doctor
