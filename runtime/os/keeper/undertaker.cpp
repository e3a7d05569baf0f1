#include "runtime/os/keeper/undertaker.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/os/process/spawn.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace troupe::os {

namespace {

bool carries(const std::filesystem::path& process, const std::string& mark) {
  std::ifstream environment(process / "environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(environment), {}};
  // Entries end with a zero byte; the first has none before it.
  for (auto at = all.find(mark); at != std::string::npos; at = all.find(mark, at + 1)) {
    const char next = all.c_str()[at + mark.size()];
    if ((at == 0 || all[at - 1] == '\0') && (next == '\0' || next == '/'))
      return true;
  }
  return false;
}

/// Everybody who carries the mark and is no zombie.
std::vector<pid_t> marked(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const auto name = entry.path().filename().string();
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (pid > 0 && pid != ::getpid() && carries(entry.path(), mark))
      found.push_back(pid);
  }
  return found;
}

/// Kills everybody there is; true once there is nobody.
bool bury_round(const std::string& mark, const control_group* group) {
  if (group)
    group->kill();
  const auto left = mark.empty() ? std::vector<pid_t>() : marked(mark);
  for (const pid_t pid : left)
    ::kill(pid, SIGKILL);
  // Nobody is put into it any more once it is gone.
  const bool group_gone = !group || group->remove();
  return left.empty() && group_gone;
}

/// Rounds, since those that fork while they are killed must be outrun.
void bury(const std::string& mark, const control_group* group) {
  const auto deadline = std::chrono::steady_clock::now() + limits::burial_within;
  while (!bury_round(mark, group) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

pid_t start_undertaker(const undertaker_options& options) {
  if (options.mark.empty() && !options.group)
    return 0;
  const pid_t watched = ::getpid();
  const unique_fd life = open_pidfd(watched);
  invariant(life.operator bool(), "this kernel has no pidfds");
  const pid_t pid = ::fork();
  invariant(pid >= 0, "no process can be forked");
  if (pid > 0)
    return pid;
  ::setsid();
  ::prctl(PR_SET_NAME, "troupe-last");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Whoever reads what we were given waits for its end, which is not ours.
  const int held = options.group ? ::fcntl(options.group->directory(), F_DUPFD_CLOEXEC, 2) : -1;
  ::dup3(life.get(), 0, O_CLOEXEC);
  std::optional<control_group> group;
  if (held >= 0 && ::dup3(held, 1, O_CLOEXEC) == 1)
    group.emplace(options.group->path(), unique_fd(1));
  ::close_range(group ? 2 : 1, ~0U, 0);
  for (pollfd ended{0, POLLIN, 0}; ended.revents == 0;)
    (void)::poll(&ended, 1, -1);
  bury(options.mark, group ? &*group : nullptr);
  options.tidy_up();
  ::_exit(0);
}

} // namespace troupe::os
