#include "runtime/os/net/tls_peer.hpp"

#include "runtime/os/net/token_tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

namespace troupe::os {

result<peer_identity> judge_peer(SSL* session, const std::string& dialled_host) {
  if (proves_token(session)) {
    if (SSL_session_reused(session) != 1)
      return failure(errc::refused, "it has not proven the job token");
    return peer_identity{};
  }
  if (!dialled_host.empty())
    if (auto fine = check_master(session, dialled_host); !fine)
      return tl::make_unexpected(fine.error());
  return peer_identity(peer_names(session));
}

namespace {

using words = std::pair<int, const char*>;

template<std::size_t N>
const char* find(const words (&among)[N], int reason) {
  for (const auto& [each, meaning] : among)
    if (each == reason)
      return meaning;
  return nullptr;
}

/// What OpenSSL says of anything but ours.
constexpr words of_strangers[] = {
    {SSL_R_WRONG_VERSION_NUMBER, "it does not speak TLS"},
    {SSL_R_HTTP_REQUEST, "it speaks HTTP"},
    {SSL_R_HTTPS_PROXY_REQUEST, "it speaks HTTP"},
    {SSL_R_RECORD_LENGTH_MISMATCH, "it does not speak TLS"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, "it does not speak TLS"},
    {SSL_R_BAD_RECORD_TYPE, "it does not speak TLS"},
    {SSL_R_UNEXPECTED_MESSAGE, "it does not speak TLS as it should"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "it speaks an older TLS than 1.3"},
    {SSL_R_VERSION_TOO_LOW, "it speaks an older TLS than 1.3"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "it takes no TLS 1.3"},
};

constexpr words of_tokens[] = {
    {SSL_R_BINDER_DOES_NOT_VERIFY, "its job token is another one than ours"},
    // OpenSSL sends the first of these alerts, the standard says the second.
    {SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER, "its job token is another one than ours"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, "its job token is another one than ours"},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, "it proves no job token, and we have no certificates"},
    {SSL_R_NO_SHARED_CIPHER, "it proves no job token, and we have no certificates"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "it takes no job token"},
    {SSL_R_CERTIFICATE_VERIFY_FAILED,
     "it expects certificates (--certificate, --key, --authority), and we have a job token"},
};

constexpr words of_certificates[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "it shows no certificate"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "it takes no certificates; it may expect a job token (--token-file)"},
};

} // namespace

error tls_failure(SSL* session, const boost::system::error_code& ec) {
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(ec.value()));
  if (reason == ERR_R_MALLOC_FAILURE)
    return {errc::unavailable,
            fmt::format("this process is out of memory (see ulimit -v; TLS: {})", ec.message())};
  if (const char* stranger = find(of_strangers, reason))
    return {errc::unavailable, fmt::format("{} (TLS: {})", stranger, ec.message())};
  const bool token = proves_token(session);
  const char* known = token ? find(of_tokens, reason) : nullptr;
  if (!known && !token && offered_token(session))
    known = "it has a job token, and we expect certificates";
  if (!known && !token) {
    const auto verdict = SSL_get_verify_result(session);
    if (verdict != X509_V_OK)
      return {errc::refused, fmt::format("the peer's certificate is not accepted: {}",
                                         X509_verify_cert_error_string(verdict))};
    known = find(of_certificates, reason);
  }
  return {errc::refused, known ? fmt::format("{} (TLS: {})", known, ec.message())
                               : fmt::format("TLS: {}", ec.message())};
}

} // namespace troupe::os
