#include "launch/keeper/left_process.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <functional>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe::launch;

namespace {

/// How a child looks that has done this; it ends with the test.
left_process child(const std::function<void()>& after) {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    after();
    (void)!::write(ready[1], "1", 1);
    for (;;)
      ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  auto found = look_at(pid);
  CHECK(found.pid == pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return found;
}

void be_the_manager() {
  ::prctl(PR_SET_NAME, "torch_shm_manager");
}

/// On a port that the system picks, or on the first one that is free from this one on.
void listen_from(int port) {
  const int one = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  do
    at.sin_port = htons(static_cast<std::uint16_t>(port));
  while (::bind(one, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 && port++ != 0);
  ::listen(one, 1);
}

} // namespace

TEST_SUITE("a process that was left behind") {
  TEST_CASE("has its name and its group, whatever the name is") {
    const auto own = child([] { ::prctl(PR_SET_NAME, "a) S 1 (b"); });
    CHECK(own.name == "a) S 1 (b");
    CHECK(own.group == ::getpgrp());
    CHECK_FALSE(own.leads_group());
    CHECK_FALSE(own.unlinks_memory);
    const auto leader = child([] { ::setsid(); });
    CHECK(leader.leads_group());
  }

  TEST_CASE("is a shared-memory manager by its name") {
    const auto manager = child(be_the_manager);
    CHECK(manager.unlinks_memory);
    CHECK_FALSE(manager.holds_resource);
  }

  TEST_CASE("holds a port that was asked for by number, but not one that the system has picked") {
    CHECK_FALSE(child([] {
                  be_the_manager();
                  listen_from(0);
                }).holds_resource);
    CHECK(child([] {
            be_the_manager();
            listen_from(23'000);
          }).holds_resource);
  }

  TEST_CASE("holds a device, unless it is one that all may have open") {
    CHECK_FALSE(child([] {
                  be_the_manager();
                  (void)::open("/dev/zero", O_RDONLY);
                }).holds_resource);
    if (::access("/dev/fuse", R_OK) == 0)
      CHECK(child([] {
              be_the_manager();
              (void)::open("/dev/fuse", O_RDONLY);
            }).holds_resource);
  }

  TEST_CASE("says little when it is gone") {
    const pid_t pid = ::fork();
    if (pid == 0)
      ::_exit(0);
    ::waitpid(pid, nullptr, 0);
    const auto gone = look_at(pid);
    CHECK(gone.pid == pid);
    CHECK(gone.name.empty());
  }
}
