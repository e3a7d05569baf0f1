#include "launch/keeper/orphan_reaper.hpp"

#include "launch/keeper/left_process.hpp"
#include "launch/keeper/limits.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace troupe::launch {

namespace {

bool carries(const std::filesystem::path& process, const std::string& mark) {
  const auto all = os::contents_of(process / "environ");
  // Entries end with a zero byte; the first has none before it.
  for (auto at = all.find(mark); at != std::string::npos; at = all.find(mark, at + 1)) {
    const char next = all.c_str()[at + mark.size()];
    if ((at == 0 || all[at - 1] == '\0') && (next == '\0' || next == '/'))
      return true;
  }
  return false;
}

/// All processes that carry the mark and are no zombies.
std::vector<pid_t> marked(const std::string& mark) {
  std::vector<pid_t> found;
  for (const auto& entry : os::entries_of("/proc")) {
    const auto name = entry.path().filename().string();
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (pid > 0 && pid != ::getpid() && carries(entry.path(), mark))
      found.push_back(pid);
  }
  return found;
}

/// Kills all that carry the mark or are in the group; true once none is left.
bool bury_round(const std::string& mark, const control_group* group) {
  if (group)
    group->kill();
  const auto left = mark.empty() ? std::vector<pid_t>() : marked(mark);
  for (const pid_t pid : left)
    ::kill(pid, SIGKILL);
  // No process is put into it any more once it is gone.
  const bool group_gone = !group || group->remove();
  return left.empty() && group_gone;
}

/// The same, but for PyTorch's shared-memory managers, one after the other. Answers whether there
/// are any: their clients are dead then, so they are about to unlink what those shared.
bool bury_clients(const std::string& mark, const control_group* group) {
  auto all = mark.empty() ? std::vector<pid_t>() : marked(mark);
  if (group) {
    const auto members = group->members();
    all.insert(all.end(), members.begin(), members.end());
  }
  bool managers = false;
  for (const pid_t pid : all)
    if (look_at(pid).unlinks_memory)
      managers = true;
    else
      ::kill(pid, SIGKILL);
  return managers;
}

/// Rounds, since those that fork while they are killed must be outrun.
void bury(const std::string& mark, const control_group* group) {
  using std::chrono::steady_clock;
  const auto unlinked = steady_clock::now() + limits::memory_unlinked_within;
  while (bury_clients(mark, group) && steady_clock::now() < unlinked)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto deadline = steady_clock::now() + limits::burial_within;
  while (!bury_round(mark, group) && steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Waits for the end of the process that forked this one. Other processes may send signals as well;
/// the parent tells.
void wait_for_end_of(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGHUP, 0, 0, 0);
  sigset_t death;
  sigemptyset(&death);
  sigaddset(&death, SIGHUP);
  while (::getppid() == parent)
    ::sigwaitinfo(&death, nullptr);
}

/// At once, and a second time, by a thread of its own: what others have left may lie on a slow
/// disk, and the end of this launcher does not wait for that.
void look_after_others(const std::function<void()>& tidy) {
  const auto look_twice = [tidy] {
    tidy();
    std::this_thread::sleep_for(limits::second_look_after);
    tidy();
  };
  try {
    std::thread(look_twice).detach();
  } catch (const std::system_error&) {
    tidy(); // the system refuses a thread
  }
}

} // namespace

void end_marked(const std::string& mark) {
  bury(mark, nullptr);
}

std::string fork_problem(int error_number) {
  const auto why = os::system_message(error_number);
  if (error_number != EAGAIN)
    return why;
  return why + " (the limit of processes is reached: see ulimit -u, and pids.max of the control "
               "group or container)";
}

result<pid_t> start_orphan_reaper(const orphan_reaper_options& options) {
  const pid_t watched = ::getpid();
  const pid_t pid = options.fork();
  if (pid < 0)
    return failure(errc::unavailable, fork_problem(errno));
  if (pid > 0)
    return pid;
  ::setsid();
  ::prctl(PR_SET_NAME, "troupe-reaper");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // The reader of an inherited pipe waits for the pipe's end, and must not wait for ours.
  const int held = options.group ? ::fcntl(options.group->directory(), F_DUPFD_CLOEXEC, 1) : -1;
  std::optional<control_group> group;
  if (held >= 0 && ::dup3(held, 0, O_CLOEXEC) == 0)
    group.emplace(options.group->path(), os::unique_fd(0));
  ::close_range(group ? 1 : 0, ~0U, 0);
  look_after_others(options.tidy_after_others);
  wait_for_end_of(watched);
  bury(options.mark, group ? &*group : nullptr);
  options.tidy_up();
  ::_exit(0);
}

} // namespace troupe::launch
