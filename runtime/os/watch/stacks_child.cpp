#include "runtime/os/watch/stacks_child.hpp"

#include "diag/stacks/dump_file.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/os/watch/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::os {

namespace {

using clock = std::chrono::steady_clock;

std::vector<std::string> command_of(const std::vector<dumped_process>& processes,
                                    bool with_children, duration within) {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(within).count();
  std::vector<std::string> words{"troupe-dump", "--messages", "--within",
                                 std::to_string(std::max<std::int64_t>(limit, 1))};
  if (with_children)
    words.push_back("--children");
  for (const auto& p : processes)
    words.push_back(fmt::format("{}:{}", p.pid, p.rank));
  return words;
}

/// Its standard output is the pipe; it has no other files of ours.
result<pid_t> spawn_reader(const std::string& program, const std::vector<std::string>& words,
                           int out) {
  std::vector<char*> argv;
  for (const auto& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // This thread blocks signals that the child must hear.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int refused = ::posix_spawn(&child, program.c_str(), &files, &how, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  if (refused != 0)
    return failure(errc::refused,
                   fmt::format("{} cannot be started: {}", program, std::strerror(refused)));
  return child;
}

/// What comes until the other end closes, the time is over, or it is too much.
std::string collect(int from, clock::time_point until) {
  std::string all;
  std::array<char, 65536> bytes;
  while (all.size() < limits::dump_bytes_max) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
    pollfd ready{from, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) == 0)
      break;
    const auto got = ::read(from, bytes.data(), bytes.size());
    if (got == 0 || (got < 0 && errno != EINTR))
      break;
    if (got > 0)
      all.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return all;
}

} // namespace

diag::dump_result read_in_child(const std::string& program,
                                const std::vector<dumped_process>& processes, bool with_children,
                                duration within) {
  diag::dump_result result;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    result.missing.push_back(fmt::format("stacks cannot be read: {}", std::strerror(errno)));
    return result;
  }
  const unique_fd from(ends[0]);
  unique_fd to(ends[1]);
  const auto until = clock::now() + within;
  const auto child = spawn_reader(program, command_of(processes, with_children, within), to.get());
  to = {};
  if (!child) {
    result.missing.push_back(child.error().what);
    return result;
  }
  const auto bytes = collect(from.get(), until);
  ::kill(*child, SIGKILL);
  while (::waitpid(*child, nullptr, 0) < 0 && errno == EINTR) {
  }
  result.stacks = diag::read_dump(bytes);
  for (const auto& p : processes)
    if (std::none_of(result.stacks.begin(), result.stacks.end(),
                     [&p](const auto& s) { return s.pid == static_cast<std::uint64_t>(p.pid); }))
      result.missing.push_back(
          fmt::format("rank {}: its process {} has ended, or its stacks were not read within {}",
                      p.rank, p.pid, in_words(within)));
  return result;
}

} // namespace troupe::os
