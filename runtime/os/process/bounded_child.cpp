#include "runtime/os/process/bounded_child.hpp"

#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::os {

namespace {

using clock = std::chrono::steady_clock;

/// After SIGKILL a child is gone at once, unless the kernel holds it.
constexpr auto gone_within = std::chrono::milliseconds(500);
/// What is looked at for the last line of its standard error.
constexpr std::size_t errors_kept = 4'096;

error refused(const std::string& program, int number) {
  return {errc::refused, fmt::format("{} cannot be started: {}", program, std::strerror(number))};
}

struct pipe_ends {
  unique_fd from, to;
};

/// Its reader never waits.
result<pipe_ends> make_pipe(const std::string& program) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return tl::make_unexpected(refused(program, errno));
  pipe_ends made{unique_fd(ends[0]), unique_fd(ends[1])};
  ::fcntl(made.from.get(), F_SETFL, O_NONBLOCK);
  return made;
}

/// A file in memory, and no pipe: nothing has to write while the child reads.
result<unique_fd> make_input(const child_task& task) {
  unique_fd file(::memfd_create("troupe-input", MFD_CLOEXEC));
  if (!file ||
      ::write(file.get(), task.input.data(), task.input.size()) !=
          static_cast<ssize_t>(task.input.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return tl::make_unexpected(refused(task.program, errno));
  return file;
}

result<pid_t> spawn_child(const child_task& task, int input, int output, int errors) {
  std::vector<char*> argv;
  for (const auto& word : task.words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  // This thread blocks signals that the child must hear.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int wrong = ::posix_spawn(&child, task.program.c_str(), &files, &how, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  if (wrong != 0)
    return tl::make_unexpected(refused(task.program, wrong));
  return child;
}

/// Children that the kernel held when they were killed. Each run looks whether they have ended.
class held_children {
 public:
  void add(pid_t child) {
    const std::lock_guard lock(mutex_);
    all_.push_back(child);
  }
  void reap() {
    const std::lock_guard lock(mutex_);
    all_.erase(std::remove_if(all_.begin(), all_.end(),
                              [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; }),
               all_.end());
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> all_;
};
held_children held;

/// Takes what is there. False: nothing comes any more.
bool take(int from, std::string& into, std::size_t most) {
  std::array<char, 65'536> bytes;
  while (into.size() <= most) {
    const auto got = ::read(from, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 && errno == EAGAIN;
    into.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return true;
}

std::string last_line_of(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

/// A child that runs, from its first moment until it is gone.
class running_child {
 public:
  running_child(const child_task& task, pid_t child, unique_fd ends, unique_fd output,
                unique_fd errors)
      : task_(task), child_(child), ends_(std::move(ends)), output_(std::move(output)),
        errors_(std::move(errors)), until_(clock::now() + task.within) {}

  child_end follow() {
    child_end end;
    const auto why = read_until_it_ends(end);
    if (why)
      ::kill(child_, SIGKILL);
    const auto status = wait(why ? gone_within : left());
    end.last_error = last_line_of(said_);
    end.output.resize(std::min(end.output.size(), task_.output_max));
    if (why) {
      end.how = *why;
    } else if (status && WIFSIGNALED(*status)) {
      end.how = child_end::cause::signalled;
      end.number = WTERMSIG(*status);
    } else if (status) {
      end.number = WEXITSTATUS(*status);
    }
    end.held = !status;
    return end;
  }

 private:
  using cause = child_end::cause;

  std::chrono::milliseconds left() const {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(until_ - clock::now()),
                    std::chrono::milliseconds(0));
  }

  /// Why it must be ended; nothing if it has ended by itself.
  std::optional<cause> read_until_it_ends(child_end& end) {
    bool writes = true, complains = true;
    while (true) {
      std::array<pollfd, 4> ready{pollfd{writes ? output_.get() : -1, POLLIN, 0},
                                  pollfd{complains ? errors_.get() : -1, POLLIN, 0},
                                  pollfd{task_.stop, POLLIN, 0}, pollfd{ends_.get(), POLLIN, 0}};
      if (::poll(ready.data(), ready.size(), static_cast<int>(left().count())) < 0 &&
          errno != EINTR)
        return cause::late;
      const auto known = end.output.size();
      writes = writes && take(output_.get(), end.output, task_.output_max);
      if (task_.heard && end.output.size() > known)
        task_.heard(end.output);
      complains = complains && hear();
      if (end.output.size() > task_.output_max)
        return cause::too_much;
      if (ready[3].revents != 0)
        return std::nullopt;
      if (ready[2].revents != 0)
        return cause::stopped;
      if (left() == std::chrono::milliseconds(0))
        return cause::late;
    }
  }

  /// Only the end of what it says on its standard error is kept.
  bool hear() {
    std::string more;
    const bool goes_on = take(errors_.get(), more, errors_kept);
    said_ += more;
    if (said_.size() > errors_kept)
      said_.erase(0, said_.size() - errors_kept);
    return goes_on;
  }

  /// Its status; nothing if the kernel holds it.
  std::optional<int> wait(std::chrono::milliseconds within) {
    pollfd ended{ends_.get(), POLLIN, 0};
    if (::poll(&ended, 1, static_cast<int>(within.count())) == 0) {
      held.add(child_);
      return std::nullopt;
    }
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const child_task& task_;
  const pid_t child_;
  const unique_fd ends_; ///< can be read when the child has ended
  const unique_fd output_, errors_;
  const clock::time_point until_;
  std::string said_;
};

} // namespace

result<child_end> run_child(const child_task& task) {
  held.reap();
  auto input = make_input(task);
  auto output = make_pipe(task.program), errors = make_pipe(task.program);
  if (!input)
    return tl::make_unexpected(input.error());
  if (!output || !errors)
    return tl::make_unexpected(output ? errors.error() : output.error());
  const auto child = spawn_child(task, input->get(), output->to.get(), errors->to.get());
  if (!child)
    return tl::make_unexpected(child.error());
  // The ends of its pipes that are the child's are its alone from here on.
  output->to = {};
  errors->to = {};
  unique_fd ends(static_cast<int>(::syscall(SYS_pidfd_open, *child, 0)));
  if (!ends) {
    const auto wrong = errno;
    ::kill(*child, SIGKILL);
    ::waitpid(*child, nullptr, 0);
    return tl::make_unexpected(refused(task.program, wrong));
  }
  return running_child(task, *child, std::move(ends), std::move(output->from),
                       std::move(errors->from))
      .follow();
}

} // namespace troupe::os
