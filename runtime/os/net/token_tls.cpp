#include "runtime/os/net/token_tls.hpp"

#include "runtime/base/invariant.hpp"

#include <openssl/ssl.h>

#include <cstring>
#include <string_view>

namespace troupe::os {

namespace {

/// What kind of secret this is; the same for every job, since it is readable on the wire.
constexpr std::string_view identity = "troupe job token 1";

const unsigned char* purpose() {
  return reinterpret_cast<const unsigned char*>(identity.data());
}

using key_type = std::array<unsigned char, 32>;

void free_key(void*, void* key, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<key_type*>(key);
}

int key_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_key);
  return index;
}

/// Not null once the peer has offered to prove a token.
int offer_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

const key_type* key_of(SSL* session) {
  return static_cast<const key_type*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session), key_index()));
}

/// The key as OpenSSL wants it: a session that could be resumed.
SSL_SESSION* as_session(SSL* session, const key_type& key) {
  // Its hash is that of the key derivation; RFC 8446, 4.2.11.
  constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  SSL_SESSION* made = SSL_SESSION_new();
  if (made && SSL_SESSION_set1_master_key(made, key.data(), key.size()) == 1 &&
      SSL_SESSION_set_cipher(made, SSL_CIPHER_find(session, aes_128_gcm_sha256)) == 1 &&
      SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1 &&
      SSL_SESSION_set1_id_context(made, purpose(), identity.size()) == 1)
    return made;
  SSL_SESSION_free(made);
  return nullptr;
}

/// The dialling end's: which key, and under which name.
int use_token(SSL* session, const EVP_MD* hash, const unsigned char** name, std::size_t* size,
              SSL_SESSION** chosen) {
  *name = purpose();
  *size = identity.size();
  *chosen = nullptr;
  // After a retry of the server's the hash is fixed.
  if (hash && EVP_MD_get_type(hash) != NID_sha256)
    return 1;
  *chosen = as_session(session, *key_of(session));
  return *chosen ? 1 : 0;
}

/// The accepting end's: the key of that name, if there is one. Without one the handshake goes on
/// with certificates, if there are any, and fails otherwise.
int find_token(SSL* session, const unsigned char* name, std::size_t size, SSL_SESSION** found) {
  *found = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(name), size) != identity)
    return 1;
  static char yes;
  SSL_set_ex_data(session, offer_index(), &yes);
  const auto* key = key_of(session);
  if (!key)
    return 1;
  *found = as_session(session, *key);
  return *found ? 1 : 0;
}

} // namespace

tls_context token_tls(const job_token& token) {
  auto context = plain_tls_1_3();
  auto* raw = context->native_handle();
  SSL_CTX_set_ex_data(raw, key_index(), new key_type(token.key()));
  invariant(SSL_CTX_set_ciphersuites(raw, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ==
                1,
            "OpenSSL lacks the ciphers of TLS 1.3");
  // A master that shows a certificate instead is never accepted: there is no authority.
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_id_context(raw, purpose(), identity.size());
  SSL_CTX_set_psk_use_session_callback(raw, use_token);
  SSL_CTX_set_psk_find_session_callback(raw, find_token);
  return context;
}

bool proves_token(SSL* session) {
  return key_of(session) != nullptr;
}

void notice_tokens(SSL_CTX* context) {
  SSL_CTX_set_psk_find_session_callback(context, find_token);
}

bool offered_token(SSL* session) {
  return SSL_get_ex_data(session, offer_index()) != nullptr;
}

} // namespace troupe::os
