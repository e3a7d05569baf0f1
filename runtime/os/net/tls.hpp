#pragma once

#include "runtime/base/result.hpp"
#include "runtime/link/role_names.hpp"

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// PEM files. The certificate file may hold a chain, its own certificate first.
struct tls_files {
  std::string certificate;
  std::string key;
  std::string authority;
  /// The authority's certificate revocation list; empty: none is revoked.
  std::string revoked = {};
};

using link::master_name;

using tls_context = std::shared_ptr<boost::asio::ssl::context>;

/// TLS 1.3 for both roles that proves nothing yet; without session tickets, since a link lives long
/// and a new one is to be judged anew.
tls_context plain_tls_1_3();

/// With a certificate on both sides. Everything is read and checked here, so that nothing can be
/// missing later. `invalid` with one line for the user.
result<tls_context> load_tls(const tls_files& files);

/// The DNS names and addresses in the certificate the peer has shown.
std::vector<std::string> peer_names(SSL* session);

/// Whether the peer is the master that was dialled as `host`: its certificate carries that name or
/// address, or `master_name`.
result<void> check_master(SSL* session, const std::string& host);

} // namespace troupe::os
