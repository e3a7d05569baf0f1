#include "launch/doctor/ask.hpp"

#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::launch::doctor {

namespace {

constexpr std::size_t output_max = 64u << 10;

/// In a group of its own, with `out` as both of its streams and nothing to read.
int start(const std::vector<std::string>& command, int out, pid_t& pid) {
  std::vector<char*> words;
  for (const auto& word : command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setpgroup(&how, 0);
  // What prepare_process() ignores would stay ignored.
  sigset_t by_default;
  sigemptyset(&by_default);
  sigaddset(&by_default, SIGPIPE);
  sigaddset(&by_default, SIGXFSZ);
  posix_spawnattr_setsigdefault(&how, &by_default);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  const int why = ::posix_spawnp(&pid, words.front(), &files, &how, words.data(), environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return why;
}

/// Until the other ends are closed; false at the deadline.
bool read_all(int from, std::chrono::steady_clock::time_point deadline, std::string& into) {
  std::array<char, 4096> some{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{from, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0)
      return false;
    const auto got = ::read(from, some.data(), some.size());
    if (got == 0 || (got < 0 && errno != EINTR))
      return true;
    if (got > 0 && into.size() < output_max)
      into.append(some.data(), static_cast<std::size_t>(got));
  }
}

} // namespace

result<told> ask(const std::vector<std::string>& command, duration within) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return failure(errc::invalid, os::system_message(errno));
  const os::unique_fd from(ends[0]);
  os::unique_fd into(ends[1]);
  pid_t pid = -1;
  if (const int why = start(command, into.get(), pid); why != 0)
    return failure(errc::invalid, os::system_message(why));
  into = {};
  told answer;
  answer.in_time = read_all(from.get(), std::chrono::steady_clock::now() + within, answer.output);
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return answer;
}

} // namespace troupe::launch::doctor
