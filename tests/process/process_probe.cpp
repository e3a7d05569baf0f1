// What a test wants to know from inside a process it started. Usage: process_probe fds | session |
// host
#include "runtime/os/process/posix_process_host.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <unistd.h>

using namespace troupe;

namespace {

/// Prints the numbers of the open file descriptors.
int print_descriptors() {
  std::string numbers;
  for (int fd = 0; fd < 1024; ++fd)
    if (std::filesystem::exists("/proc/self/fd/" + std::to_string(fd)))
      numbers += std::to_string(fd) + " ";
  std::puts(numbers.c_str());
  return 0;
}

/// Prints whether this process leads its session and its group.
int print_session() {
  std::printf("%s %s\n", ::getsid(0) == ::getpid() ? "session" : "-",
              ::getpgrp() == ::getpid() ? "group" : "-");
  return 0;
}

/// Hosts two processes, prints their pids, and waits to be killed.
int host_two() {
  os::io_thread io;
  auto host = os::posix_process_host::create(io);
  if (!host)
    return 1;
  for (int i = 0; i < 2; ++i) {
    const auto one =
        (*host)->start({{"/bin/sleep", "1000"}, {}, "", "", ""}, [](ports::exit_status) {});
    if (!one)
      return 1;
    std::printf("%d\n", one->pid);
  }
  std::fflush(stdout);
  for (;;)
    ::pause();
}

} // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "fds")
    return print_descriptors();
  if (verb == "session")
    return print_session();
  if (verb == "host")
    return host_two();
  return 2;
}
