#include "runtime/os/net/tls.hpp"

#include "runtime/os/net/token_tls.hpp"

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;

template<class T, void (*Free)(T*)>
struct freed_by {
  void operator()(T* p) const { Free(p); }
};
using certificate_ptr = std::unique_ptr<X509, freed_by<X509, X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY, EVP_PKEY_free>>;
using file_ptr = std::unique_ptr<BIO, freed_by<BIO, BIO_free_all>>;
using names_ptr = std::unique_ptr<GENERAL_NAMES, freed_by<GENERAL_NAMES, GENERAL_NAMES_free>>;

result<void> check_readable(const char* what, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char first = 0;
  const bool readable = fd >= 0 && ::read(fd, &first, 1) >= 0;
  const int why = errno;
  if (fd >= 0)
    ::close(fd);
  if (readable)
    return {};
  return failure(errc::invalid,
                 fmt::format("cannot read the TLS {} file {}: {}", what, path, std::strerror(why)));
}

/// Asking on a terminal, OpenSSL's default, would hang a supervisor.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

result<void> use_certificate(SSL_CTX* context, const std::string& path) {
  if (auto fine = check_readable("certificate", path); !fine)
    return fine;
  if (SSL_CTX_use_certificate_chain_file(context, path.c_str()) == 1)
    return {};
  return failure(errc::invalid,
                 fmt::format("the TLS certificate file {} holds no usable PEM certificate", path));
}

result<void> use_key(SSL_CTX* context, const tls_files& files) {
  if (auto fine = check_readable("key", files.key); !fine)
    return fine;
  const file_ptr file(BIO_new_file(files.key.c_str(), "r"));
  const key_ptr key(file ? PEM_read_bio_PrivateKey(file.get(), nullptr, no_passphrase, nullptr)
                         : nullptr);
  if (!key)
    return failure(
        errc::invalid,
        fmt::format("the TLS key file {} holds no PEM key, or one with a passphrase", files.key));
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1)
    return {};
  return failure(errc::invalid,
                 fmt::format("the TLS key in {} does not belong to the certificate in {}",
                             files.key, files.certificate));
}

result<void> use_authority(SSL_CTX* context, const std::string& path) {
  if (auto fine = check_readable("authority", path); !fine)
    return fine;
  if (SSL_CTX_load_verify_file(context, path.c_str()) == 1)
    return {};
  return failure(errc::invalid,
                 fmt::format("the TLS authority file {} holds no usable PEM certificate", path));
}

/// From now on each peer's certificate is looked up in the list. A list that has expired, or that
/// is another authority's, lets no peer in.
result<void> use_revocations(SSL_CTX* context, const std::string& path) {
  if (path.empty())
    return {};
  if (auto fine = check_readable("revocation list", path); !fine)
    return fine;
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  X509_LOOKUP* from_file = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  if (from_file && X509_load_crl_file(from_file, path.c_str(), X509_FILETYPE_PEM) > 0 &&
      X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK) == 1)
    return {};
  return failure(errc::invalid,
                 fmt::format("the TLS revocation list file {} holds no usable PEM list", path));
}

std::string text_of(const ASN1_STRING* s) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(s)),
          static_cast<std::size_t>(ASN1_STRING_length(s))};
}

std::string address_of(const ASN1_OCTET_STRING* raw) {
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(raw));
  const auto* from = ASN1_STRING_get0_data(raw);
  asio::ip::address_v4::bytes_type v4;
  asio::ip::address_v6::bytes_type v6;
  if (size == v4.size()) {
    std::memcpy(v4.data(), from, size);
    return asio::ip::address_v4(v4).to_string();
  }
  if (size == v6.size()) {
    std::memcpy(v6.data(), from, size);
    return asio::ip::address_v6(v6).to_string();
  }
  return {};
}

std::string quoted(const std::vector<std::string>& names) {
  return names.empty() ? "no name at all" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

tls_context plain_tls_1_3() {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls);
  auto* raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS); // most links are idle most of the time
  return context;
}

result<tls_context> load_tls(const tls_files& files) {
  auto context = plain_tls_1_3();
  auto* raw = context->native_handle();
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  notice_tokens(raw);
  for (const auto& loaded :
       {use_certificate(raw, files.certificate), use_key(raw, files),
        use_authority(raw, files.authority), use_revocations(raw, files.revoked)})
    if (!loaded) {
      ERR_clear_error();
      return tl::make_unexpected(loaded.error());
    }
  return context;
}

std::vector<std::string> peer_names(SSL* session) {
  const certificate_ptr certificate(SSL_get1_peer_certificate(session));
  if (!certificate)
    return {};
  const names_ptr found(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  for (int i = 0; found && i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(found.get(), i);
    if (name->type == GEN_DNS)
      names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_IPADD)
      names.push_back(address_of(name->d.iPAddress));
  }
  return names;
}

result<void> check_master(SSL* session, const std::string& host) {
  const certificate_ptr certificate(SSL_get1_peer_certificate(session));
  if (!certificate)
    return failure(errc::refused, "the master has shown no certificate");
  const auto carries = [&certificate](const std::string& name) {
    return X509_check_host(certificate.get(), name.data(), name.size(),
                           X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1;
  };
  // The interface by which an address is reached is this machine's affair.
  const auto address = host.substr(0, host.find('%'));
  if (carries(master_name) || carries(host) ||
      X509_check_ip_asc(certificate.get(), address.c_str(), 0) == 1)
    return {};
  return failure(errc::refused,
                 fmt::format("the master's certificate is for {}, neither for {} nor for {}",
                             quoted(peer_names(session)), host, master_name));
}

} // namespace troupe::os
