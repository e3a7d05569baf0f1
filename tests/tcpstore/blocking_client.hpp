#pragma once

#include "runtime/base/invariant.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::testing {

/// A TCP client with blocking calls and patience for failures only.
class blocking_client {
 public:
  explicit blocking_client(std::uint16_t port, const char* address = "127.0.0.1")
      : descriptor_(connected(port, address)) {
    invariant(descriptor_ >= 0, "cannot connect");
  }
  ~blocking_client() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }
  blocking_client(blocking_client&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  blocking_client& operator=(blocking_client&&) = delete;

  static bool can_connect(std::uint16_t port, const char* address) {
    const int descriptor = connected(port, address);
    if (descriptor >= 0)
      ::close(descriptor);
    return descriptor >= 0;
  }

  /// Until the kernel has all of it, or the other side is gone.
  void send(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const auto n = ::send(descriptor_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0)
        return;
      at += static_cast<std::size_t>(n);
    }
  }

  /// Exactly so many bytes.
  std::string read(std::size_t size) {
    std::string all(size, '\0');
    for (std::size_t at = 0; at < size;) {
      const auto n = receive(all.data() + at, size - at);
      invariant(n > 0, "the connection ended");
      at += static_cast<std::size_t>(n);
    }
    return all;
  }

  /// What comes until the other side ends the connection.
  std::string read_to_end() {
    std::string all;
    char chunk[4'096];
    for (ssize_t n = 0; (n = receive(chunk, sizeof(chunk))) > 0;)
      all.append(chunk, static_cast<std::size_t>(n));
    return all;
  }

 private:
  static int connected(std::uint16_t port, const std::string& address) {
    const bool v6 = address.find(':') != std::string::npos;
    const int descriptor = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 six{};
    sockaddr_in four{};
    six.sin6_family = AF_INET6;
    four.sin_family = AF_INET;
    six.sin6_port = four.sin_port = htons(port);
    ::inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(),
                v6 ? static_cast<void*>(&six.sin6_addr) : static_cast<void*>(&four.sin_addr));
    const auto* to =
        v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    if (::connect(descriptor, to, v6 ? sizeof(six) : sizeof(four)) == 0)
      return descriptor;
    ::close(descriptor);
    return -1;
  }

  ssize_t receive(char* to, std::size_t size) const {
    constexpr int patience_ms = 60'000;
    pollfd p{descriptor_, POLLIN, 0};
    invariant(::poll(&p, 1, patience_ms) == 1, "nothing came");
    return ::recv(descriptor_, to, size, 0);
  }

  int descriptor_;
};

} // namespace troupe::testing
