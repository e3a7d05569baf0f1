#include "trace/process/port.hpp"

#include "trace/core/text.hpp"
#include "trace/limits.hpp"
#include "trace/process/bell.hpp"

#include <array>
#include <cerrno>
#include <cstdint>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::trace {

int listen_at(int port) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening < 0)
    return -1;
  const int yes = 1;
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listening, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(listening, 8) != 0) {
    const int why = errno;
    close(listening);
    errno = why;
    return -1;
  }
  return listening;
}

namespace {

/// False: not within the time.
bool wait_for(int socket, short what, std::uint64_t until) {
  const auto now = now_ns();
  if (now >= until)
    return false;
  pollfd one{socket, what, 0};
  return poll(&one, 1, static_cast<int>((until - now) / 1'000'000) + 1) > 0;
}

bool send_all(int client, std::string_view words, std::uint64_t until) {
  while (!words.empty()) {
    const auto sent = send(client, words.data(), words.size(), MSG_NOSIGNAL);
    if (sent > 0)
      words.remove_prefix(static_cast<std::size_t>(sent));
    else if ((errno != EAGAIN && errno != EINTR) || !wait_for(client, POLLOUT, until))
      return false;
  }
  return true;
}

/// The request's head; empty: it did not come.
std::string_view head_of(int client, std::array<char, limits::request_bytes_max>& memory,
                         std::uint64_t until) {
  std::size_t got = 0;
  while (got < memory.size()) {
    const auto bytes = recv(client, memory.data() + got, memory.size() - got, 0);
    if (bytes > 0) {
      got += static_cast<std::size_t>(bytes);
      const std::string_view head(memory.data(), got);
      if (head.find("\r\n\r\n") != std::string_view::npos)
        return head;
    } else if (bytes == 0 || (errno != EAGAIN && errno != EINTR) ||
               !wait_for(client, POLLIN, until)) {
      return {};
    }
  }
  return {};
}

bool begins(std::string_view words, std::string_view with) {
  return first_of(words, with.size()) == with;
}

void respond(int client, const char* status, std::string_view body, std::uint64_t until) {
  std::array<char, 256> memory{};
  text head(memory.data(), memory.size());
  head.add("HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
           "Content-Length: %zu\r\nConnection: close\r\n\r\n",
           status, body.size());
  if (send_all(client, head.written(), until))
    send_all(client, body, until);
}

} // namespace

void answer_one(int listening, std::string_view (*metrics)()) {
  const int client = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0)
    return;
  const auto until = now_ns() + std::uint64_t{limits::client_within_ms} * 1'000'000;
  std::array<char, limits::request_bytes_max> memory{};
  const auto head = head_of(client, memory, until);
  if (begins(head, "GET /metrics ") || begins(head, "GET /metrics?"))
    respond(client, "200 OK", metrics(), until);
  else if (!head.empty())
    respond(client, "404 Not Found", "only GET /metrics is here\n", until);
  close(client);
}

} // namespace troupe::trace
