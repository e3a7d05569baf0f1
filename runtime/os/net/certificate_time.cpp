#include "runtime/os/net/certificate_time.hpp"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace troupe::os {

namespace {

/// Of a time in a certificate, from now on.
std::optional<std::int64_t> seconds_until(const ASN1_TIME* time) {
  int days = 0, seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, time) != 1)
    return std::nullopt;
  return std::int64_t{days} * 86'400 + seconds;
}

} // namespace

std::optional<certificate_time> time_of_certificate(const std::string& path) {
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> file(BIO_new_file(path.c_str(), "r"),
                                                             &::BIO_free_all);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr, &::X509_free);
  if (!certificate)
    return std::nullopt;
  const auto begins = seconds_until(X509_get0_notBefore(certificate.get()));
  const auto ends = seconds_until(X509_get0_notAfter(certificate.get()));
  if (!begins || !ends)
    return std::nullopt;
  return certificate_time{*begins, *ends};
}

} // namespace troupe::os
