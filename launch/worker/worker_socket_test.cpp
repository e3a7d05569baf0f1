#include "launch/worker/worker_socket.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

/// As a worker dials TROUPE_CHANNEL; nothing where no socket of that name listens, or its queue is
/// full.
std::optional<os::unique_fd> dialled(const std::string& name) {
  os::unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(name.size() <= sizeof address.sun_path);
  std::memcpy(address.sun_path, name.data(), name.size());
  address.sun_path[0] = '\0';
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    return std::nullopt;
  return socket;
}

/// Of this test alone, also where several run at once.
std::string mark(const std::string& what) {
  return what + "-" + std::to_string(::getpid());
}

} // namespace

TEST_SUITE("the socket that workers dial") {
  TEST_CASE("a worker that dials before anything accepts waits there") {
    const worker_socket s(mark("waits"), 2);
    REQUIRE(s.why_not().empty());
    CHECK(s.name() == "@troupe-" + mark("waits"));
    const auto worker = dialled(s.name());
    REQUIRE(worker);
    CHECK(::send(worker->get(), "hello", 5, 0) == 5);
    const os::unique_fd accepted(::accept(s.descriptor(), nullptr, nullptr));
    REQUIRE(accepted);
    char said[16];
    CHECK(::recv(accepted.get(), said, sizeof said, 0) == 5);
  }

  TEST_CASE("accepting waits for nothing, and no program inherits it") {
    const worker_socket s(mark("plain"), 1);
    CHECK(::accept(s.descriptor(), nullptr, nullptr) == -1);
    CHECK(errno == EAGAIN);
    CHECK((::fcntl(s.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  }

  TEST_CASE("only so many wait as there can be workers and what they start") {
    const worker_socket s(mark("bounded"), 1);
    std::vector<os::unique_fd> waiting;
    while (waiting.size() < 100) {
      auto next = dialled(s.name());
      if (!next)
        break;
      waiting.push_back(std::move(*next));
    }
    CHECK(waiting.size() >= 4);
    CHECK(waiting.size() <= 5); // the kernel's queue holds one more than it is told
  }

  TEST_CASE("a name that is taken is no socket, and the reason is told") {
    std::string name;
    {
      const worker_socket first(mark("taken"), 1);
      name = first.name();
      const worker_socket second(mark("taken"), 1);
      CHECK(second.name().empty());
      CHECK(second.descriptor() == -1);
      CHECK(second.why_not() == "Address already in use");
      CHECK(dialled(name));
    }
    // With the socket goes its name: no file is left behind.
    CHECK(!dialled(name));
    CHECK(worker_socket(mark("taken"), 1).name() == name);
  }

  TEST_CASE("a copy is the same socket, and keeps it") {
    std::optional<worker_socket> first(std::in_place, mark("copy"), 1);
    const auto copy = *first;
    first.reset();
    CHECK(dialled(copy.name()));
  }

  TEST_CASE("a mark that is too long is cut, and what is told is what is listened at") {
    const worker_socket s(mark("long") + std::string(300, 'x'), 1);
    CHECK(s.name().size() == sizeof(sockaddr_un{}.sun_path));
    CHECK(dialled(s.name()));
  }
}
