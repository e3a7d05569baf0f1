#pragma once

#include "runtime/os/net/tls.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::os {

/// The names in a peer's certificate; nothing if it has proven the job token, which belongs to all
/// of the job.
using peer_identity = std::optional<std::vector<std::string>>;

/// The identity of the peer at the other end of a finished handshake; an error if the peer may not
/// be there. `dialled_host` is empty at the accepting end.
result<peer_identity> judge_peer(SSL* session, const std::string& dialled_host);

/// What is wrong with a TLS connection, in words that say what to change; at both ends. `refused`
/// if the peer speaks TLS as a process of a job does, and the proofs do not match. `unavailable` if
/// it is something else, which may make room for the master.
error tls_failure(SSL* session, const boost::system::error_code& ec);

} // namespace troupe::os
