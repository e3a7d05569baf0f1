// The node supervisor's end of a channel, for tests in other languages: `channel_probe @NAME` takes
// one connection, prints the hello, asks for the flight record and prints that.

#include "messages/kinds.hpp"
#include "messages/limits.hpp"
#include "messages/msg.hpp"
#include "messages/text.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace troupe;
using namespace troupe::messages;

namespace {

constexpr int within_ms = 60'000;

os::unique_fd listening(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  address.sun_path[0] = '\0';
  os::unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(socket.get(), 1) != 0)
    return {};
  return socket;
}

bool is_ready(int file) {
  pollfd one{file, POLLIN, 0};
  return ::poll(&one, 1, within_ms) == 1;
}

any_msg hear(int from) {
  std::string bytes(limits::worker_packet_max, '\0');
  if (!is_ready(from))
    return {};
  const auto size = ::recv(from, bytes.data(), bytes.size(), 0);
  auto said = admit(bytes.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  return said ? *said : any_msg();
}

std::string record_from(int socket) {
  const auto request = author("probe").write<FlightRecordRequest>(generation{0}, [](auto) {}).any();
  const auto bytes = request.words().asBytes();
  if (::send(socket, bytes.begin(), bytes.size(), MSG_NOSIGNAL) < 0)
    return "gone";
  std::string whole;
  while (const auto said = hear(socket)) {
    if (!said.is<FlightRecord>())
      continue;
    auto piece = said.as<FlightRecord>().read();
    if (piece->isWhy())
      return piece->getWhy().cStr();
    whole.append(reinterpret_cast<const char*>(piece->getPiece().begin()),
                 piece->getPiece().size());
    if (whole.size() >= piece->getBytes())
      return whole;
  }
  return "no answer";
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2)
    return 2;
  const auto listens = listening(arguments[1]);
  if (!listens)
    return 3;
  fmt::print("listens\n");
  std::fflush(stdout);
  if (!is_ready(listens.get()))
    return 4;
  const os::unique_fd talks(::accept4(listens.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const auto hello = hear(talks.get());
  if (!hello)
    return 5;
  fmt::print("{}\n", to_text(hello));
  std::fflush(stdout);
  // The test says when to ask.
  if (std::getchar() == EOF)
    return 6;
  fmt::print("{}\n", record_from(talks.get()));
}
