#pragma once

#include "runtime/os/net/job_token.hpp"
#include "runtime/os/net/tls.hpp"

namespace troupe::os {

/// TLS 1.3 with the token as its pre-shared key and a Diffie-Hellman exchange beside it
/// (psk_dhe_ke), for both roles. A peer that does not know the token cannot finish the handshake.
/// An attacker who learns the token later cannot read what was said before. There are no
/// certificates.
tls_context token_tls(const job_token& token);

/// Whether connections of this context prove a token.
bool proves_token(SSL* session);

/// Lets the accepting end notice, and say, that a peer comes with a token where certificates are
/// expected.
void notice_tokens(SSL_CTX* context);

/// Whether the peer has offered to prove a token. At the accepting end.
bool offered_token(SSL* session);

} // namespace troupe::os
