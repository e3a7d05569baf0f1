#include "runtime/os/stacks/socket_traffic.hpp"

#include "runtime/os/process/unique_fd.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe::os;

namespace {

/// A connection to this process itself.
struct connection {
  unique_fd ours, theirs;

  connection() {
    const unique_fd listens{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(listens.get(), address, size) == 0);
    REQUIRE(::listen(listens.get(), 1) == 0);
    REQUIRE(::getsockname(listens.get(), address, &size) == 0);
    ours = unique_fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(::connect(ours.get(), address, size) == 0);
    theirs = unique_fd{::accept(listens.get(), nullptr, nullptr)};
  }

  void carry(std::size_t bytes) {
    std::string some(bytes, 'x');
    REQUIRE(::send(ours.get(), some.data(), bytes, 0) == static_cast<ssize_t>(bytes));
    REQUIRE(::recv(theirs.get(), some.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes));
  }
};

std::uint64_t inode_of(const unique_fd& socket) {
  struct stat file {};
  REQUIRE(::fstat(socket.get(), &file) == 0);
  return file.st_ino;
}

} // namespace

TEST_CASE("what each end of a connection has sent and received") {
  connection one, other;
  one.carry(50'000);
  other.carry(3'000);
  socket_traffic traffic;
  // The peer's word that a connection was made counts as one byte.
  CHECK(traffic.of(::getpid(), {inode_of(one.theirs)}) == 50'000);
  CHECK(traffic.of(::getpid(), {inode_of(one.ours)}) == 50'001);
  CHECK(traffic.of(::getpid(), {inode_of(one.theirs), inode_of(other.theirs)}) == 53'000);
  CHECK(traffic.of(::getpid(), {}) == 0);

  one.carry(1'000);
  CHECK(traffic.of(::getpid(), {inode_of(one.theirs)}) == 50'000); // asked once
  CHECK(socket_traffic().of(::getpid(), {inode_of(one.theirs)}) == 51'000);
}

TEST_CASE("of a process in another network nothing is known") {
  connection one;
  one.carry(50'000);
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const auto child = ::fork();
  if (child == 0) {
    const char moved = ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 'y' : 'n';
    (void)!::write(pipe[1], &moved, 1);
    ::pause();
  }
  char moved = 0;
  REQUIRE(::read(pipe[0], &moved, 1) == 1);
  if (moved == 'y')
    CHECK(socket_traffic().of(child, {inode_of(one.theirs)}) == 0);
  else
    MESSAGE("no network of its own may be made here");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}
