#include "tests/link/child.hpp"

#include "runtime/base/invariant.hpp"

#include <array>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace troupe::testing {

child::child(const std::vector<std::string>& arguments) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  invariant(::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0, "no pipes");
  std::vector<char*> argv{const_cast<char*>(LINK_PEER)};
  for (const auto& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  const int rc = ::posix_spawn(&pid_, LINK_PEER, &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  invariant(rc == 0, "cannot start link_peer");
}

child::~child() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::close(to_);
  ::close(from_);
}

std::string child::line() {
  std::string text;
  for (char c = 0; ::read(from_, &c, 1) == 1 && c != '\n';)
    text += c;
  invariant(!text.empty(), "link_peer said nothing");
  return text;
}

void child::signal(int number) const {
  ::kill(pid_, number);
}

void child::stop() const {
  signal(SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

} // namespace troupe::testing
