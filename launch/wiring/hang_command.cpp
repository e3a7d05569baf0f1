#include "launch/wiring/hang_command.hpp"

#include "runtime/os/io_thread.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::launch {

namespace {

constexpr auto command_within = std::chrono::seconds(60);
/// Findings that wait for the command that runs.
constexpr int waiting_max = 16;

const char* name_of(messages::HangKind kind) {
  switch (kind) {
  case messages::HangKind::NOT_ENTERED:
    return "not_entered";
  case messages::HangKind::OTHER_COLLECTIVE:
    return "other_collective";
  case messages::HangKind::LINK:
    return "link";
  case messages::HangKind::ALONE:
    return "alone";
  case messages::HangKind::STRAGGLER:
    return "straggler";
  }
  return "unknown";
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const auto& word : words)
    all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

/// Empty: it ended well.
std::string run(const std::string& command, const std::vector<std::string>& environment) {
  const std::vector<std::string> words{"sh", "-c", command};
  auto argv = pointers(words), environ_of = pointers(environment);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&how, &none);
  // A group of its own, so that what it has started goes with it.
  ::posix_spawnattr_setpgroup(&how, 0);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int refused =
      ::posix_spawn(&child, "/bin/sh", nullptr, &how, argv.data(), environ_of.data());
  ::posix_spawnattr_destroy(&how);
  if (refused != 0)
    return std::strerror(refused);
  const os::unique_fd ends(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{ends.get(), POLLIN, 0};
  const auto within = std::chrono::milliseconds(command_within);
  const bool late = ::poll(&ended, 1, static_cast<int>(within.count())) == 0;
  if (late)
    ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late)
    return fmt::format("it took longer than {}, and was killed", in_words(command_within));
  if (WIFSIGNALED(status))
    return fmt::format("signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit code {}", WEXITSTATUS(status));
}

} // namespace

std::vector<std::string> variables_of(const actors::diagnosis::finding& f) {
  auto what = f.what.read();
  std::vector<std::string> ranks;
  for (const auto rank : what->getCulprits())
    ranks.push_back(std::to_string(rank));
  return {fmt::format("TROUPE_HANG_SENTENCE={}", what->getSentence().cStr()),
          fmt::format("TROUPE_HANG_RANKS={}", fmt::join(ranks, ",")),
          fmt::format("TROUPE_HANG_KIND={}", name_of(what->getKind())),
          fmt::format("TROUPE_HANG_STACKS={}", f.stacks)};
}

actors::diagnosis::hook hang_command(const std::string& command, const log::sink& sink) {
  struct runner {
    os::io_thread thread{"troupe-command"};
    std::atomic<int> waiting{0};
  };
  const auto by = std::make_shared<runner>();
  return [command, sink, by](const actors::diagnosis::finding& f) {
    if (by->waiting.fetch_add(1) >= waiting_max) {
      --by->waiting;
      return;
    }
    auto environment = variables_of(f);
    for (char** entry = environ; *entry != nullptr; ++entry)
      environment.emplace_back(*entry);
    boost::asio::post(by->thread.context(), [command, sink, environment, &waiting = by->waiting] {
      const auto why = run(command, environment);
      --waiting;
      if (!why.empty())
        sink("launcher", {log::level::warning,
                          "hang_command_failed",
                          fmt::format("--hang-command '{}' failed: {}", command, why),
                          {{"command", command}, {"why", why}}});
    });
  };
}

} // namespace troupe::launch
