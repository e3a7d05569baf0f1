#include "tests/link/raw_peer.hpp"

#include "runtime/base/invariant.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::testing {

raw_peer::raw_peer(std::uint16_t port)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  invariant(::connect(descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0,
            "a raw peer cannot connect");
}

raw_peer::~raw_peer() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

raw_peer::raw_peer(raw_peer&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

bool raw_peer::send(const std::vector<kj::byte>& raw) {
  return ::send(descriptor_, raw.data(), raw.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(raw.size());
}

std::vector<kj::byte> raw_peer::read_to_end(duration patience) {
  std::vector<kj::byte> all;
  std::array<kj::byte, 4096> some{};
  for (;;) {
    pollfd ready{descriptor_, POLLIN, 0};
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
    invariant(::poll(&ready, 1, static_cast<int>(ms)) == 1,
              "a raw peer waited in vain for the end");
    const auto n = ::recv(descriptor_, some.data(), some.size(), 0);
    if (n <= 0)
      return all;
    all.insert(all.end(), some.begin(), some.begin() + n);
  }
}

std::vector<kj::byte> raw_peer::read(std::size_t size) {
  std::vector<kj::byte> all(size);
  invariant(::recv(descriptor_, all.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size),
            "a raw peer read too little");
  return all;
}

std::string raw_tls_client(std::uint16_t port, const std::string& certificate,
                           const std::string& key, const std::vector<kj::byte>& first_bytes,
                           int highest_version) {
  raw_peer peer(port);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, highest_version);
  if (!certificate.empty()) {
    SSL_CTX_use_certificate_chain_file(context, certificate.c_str());
    SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM);
  }
  SSL* session = SSL_new(context);
  SSL_set_fd(session, peer.descriptor());
  ERR_clear_error();
  int rc = SSL_connect(session);
  if (rc == 1)
    rc = SSL_write(session, first_bytes.data(), static_cast<int>(first_bytes.size()));
  char answer = 0;
  if (rc > 0)
    rc = SSL_read(session, &answer, 1);
  const auto* why = ERR_reason_error_string(ERR_get_error());
  SSL_free(session);
  SSL_CTX_free(context);
  return rc > 0 ? "taken" : why ? why : "closed";
}

} // namespace troupe::testing
