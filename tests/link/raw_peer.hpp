#pragma once

#include "runtime/base/time.hpp"
#include "runtime/link/frame.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::testing {

/// A TCP client without manners, on loopback, with blocking calls.
class raw_peer {
 public:
  explicit raw_peer(std::uint16_t port);
  ~raw_peer();
  raw_peer(raw_peer&& other) noexcept;
  raw_peer& operator=(raw_peer&&) = delete;

  /// Whether everything was taken by the kernel.
  bool send(const std::vector<kj::byte>& raw);

  /// Reads until the other side has closed or reset the connection and returns what came before;
  /// fails the invariant after `patience`.
  std::vector<kj::byte> read_to_end(duration patience = std::chrono::minutes(1));

  /// Reads exactly this many bytes.
  std::vector<kj::byte> read(std::size_t size);

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// A TLS client without manners. With `files` it shows that certificate. Returns why the other side
/// ended the connection, as OpenSSL puts it; "taken" if it answered with a byte.
std::string raw_tls_client(std::uint16_t port, const std::string& certificate,
                           const std::string& key, const std::vector<kj::byte>& first_bytes,
                           int highest_version);

} // namespace troupe::testing
