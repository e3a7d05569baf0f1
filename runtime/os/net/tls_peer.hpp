#pragma once

#include "runtime/os/net/tls.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::os {

/// The names in a peer's certificate; nothing if it has proven the job token, which belongs to all
/// of the job.
using peer_identity = std::optional<std::vector<std::string>>;

/// Who is at the other end of a finished handshake, and whether that may be. `dialled_host` is
/// empty at the accepting end.
result<peer_identity> judge_peer(SSL* session, const std::string& dialled_host);

/// What is wrong with a TLS connection, in words that say what to change; at both ends.
std::string tls_failure(SSL* session, const boost::system::error_code& ec);

} // namespace troupe::os
